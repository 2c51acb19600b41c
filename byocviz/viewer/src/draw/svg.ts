/** Small helpers for SVG elements. Text goes in as text nodes only. */
const NS = "http://www.w3.org/2000/svg";

export type Attrs = Record<string, string | number | undefined>;

export function el<K extends keyof SVGElementTagNameMap>(
  name: K, attrs: Attrs = {}, parent?: Element,
): SVGElementTagNameMap[K] {
  const node = document.createElementNS(NS, name);
  for (const key in attrs) {
    const value = attrs[key];
    if (value !== undefined) node.setAttribute(key, String(value));
  }
  parent?.appendChild(node);
  return node;
}

export function label(text: string, attrs: Attrs, parent: Element): SVGTextElement {
  const node = el("text", attrs, parent);
  node.textContent = printable(text);
  return node;
}

/** Without characters that turn text round or hide it; the isolation of bidi text is left to it. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, "\ufffd");
}
