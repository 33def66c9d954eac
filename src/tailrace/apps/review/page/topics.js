/** The name of a topic in the language of the page; a topic the page does not know keeps the box's label. */

import { knows, t } from "./shared/i18n.js";

export const topicName = (topic) => (knows(`topic.${topic.id}`) ? t(`topic.${topic.id}`) : topic.label);
