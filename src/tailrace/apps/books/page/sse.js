/** Server-sent events out of the body of a fetch, which, unlike an EventSource, can post and can be ended. */

const EVENT_CHARS_MAX = 1 << 20;

/**
 * @param {ReadableStream<Uint8Array>} body
 * @param {(name: string, data: any) => void} tell  each event with its JSON
 */
export async function readEvents(body, tell) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const events = rest.split("\n\n");
    rest = events.pop() || "";
    if (rest.length > EVENT_CHARS_MAX) throw new Error("an event without an end");
    for (const event of events) one(event, tell);
  }
}

function one(event, tell) {
  let name = "message";
  const data = [];
  for (const line of event.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  if (data.length) tell(name, JSON.parse(data.join("\n")));
}
