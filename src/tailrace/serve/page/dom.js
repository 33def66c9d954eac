/**
 * Making elements without a framework: one function, no markup in strings, so that no text of a
 * guest or of the box can ever become markup.
 */

/**
 * @param {string} tag  "td.num" makes a td of class num
 * @param {Record<string, any>} [props]  attributes; `on` holds listeners, `vars` custom properties
 * @param {...(Node|string|number|null|undefined|false)} children
 * @returns {HTMLElement}
 */
export function el(tag, props = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const node = document.createElement(name);
  if (classes.length) node.className = classes.join(" ");
  fill(node, props, children);
  return node;
}

/** The same for SVG. @returns {SVGElement} */
export function svg(tag, props = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  if (classes.length) node.setAttribute("class", classes.join(" "));
  fill(node, props, children);
  return node;
}

function fill(node, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "on") for (const [event, fn] of Object.entries(value)) node.addEventListener(event, fn);
    else if (key === "vars") setVars(node, value);
    else if (key === "value") node.value = value;
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
}

/** Set custom properties or styles through the CSSOM, which the content security policy allows. */
export function setVars(node, vars) {
  for (const [key, value] of Object.entries(vars)) node.style.setProperty(key, String(value));
}

/** Write text only where it differs: a screen reader and the layout are left in peace. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** @param {string} id @returns {any} */
export const $ = (id) => document.getElementById(id);
