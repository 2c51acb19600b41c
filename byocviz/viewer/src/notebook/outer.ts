/**
 * The widget of a notebook: a frame that holds the viewer, and messages between it and the kernel.
 * What is large (the page with Graphviz) is asked for when a view is made and kept by its digest,
 * so that a saved notebook does not hold it.
 */
interface WidgetModel {
  get(name: string): unknown;
  on(event: string, call: (...args: never[]) => void): void;
  off(event: string, call: (...args: never[]) => void): void;
  send(content: unknown): void;
}

/** Without a word from the kernel for so long, what was kept with the notebook is shown. */
const PATIENCE = 5000;

/** How long an answer may take, and how often it is asked whether anybody is there. */
const ANSWER = 10_000;
const EVERY = 20_000;
const GONE = "The kernel was restarted, or is gone: run this cell again to go on. Below is how it last looked.";
const SILENT = "The kernel does not answer: it is busy, or was restarted. If it was, run this cell again. Below is how it last looked.";

const pages = new Map<string, Promise<string>>();
let views = 0;

async function unpack(data: ArrayBuffer): Promise<string> {
  return new Response(new Blob([data]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

function bytesOf(view: DataView): ArrayBuffer {
  return view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength) as ArrayBuffer;
}

function isDark(): boolean {
  const body = document.body;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
  const kind = body.dataset.vscodeThemeKind ?? "";
  if (kind) return kind.includes("dark") || kind === "vscode-high-contrast";
  const page = getComputedStyle(body).backgroundColor.match(/\d+(\.\d+)?/g)?.map(Number) ?? [];
  return page.length >= 3 && page[3] !== 0 && page[0] + page[1] + page[2] < 300;
}

function render({ model, el }: { model: WidgetModel; el: HTMLElement }): () => void {
  const id = `v${Date.now().toString(36)}-${views++}`;
  const box = document.createElement("div");
  box.className = "byocviz-view";
  box.style.height = `${Number(model.get("height")) || 680}px`;
  el.appendChild(box);
  // What was displayed beside this for front ends without widgets is not needed here.
  const hide = document.createElement("style");
  const name = String(model.get("_name")).replace(/[^\w-]/g, "");
  hide.textContent = `[data-byocviz-static="${name}"]{display:none !important}`;
  let frame: HTMLIFrameElement | null = null;
  let live = false;
  const send = (content: Record<string, unknown>): void => {
    try {
      model.send({ ...content, view: id });
      if (content.type !== "closed") expect();
    } catch {
      // Without a kernel there is nobody to tell.
      cut = true;
      say(GONE);
    }
  };

  const still = (): void => {
    if (live) return;
    const host = document.createElement("div");
    host.className = "byocviz-still";
    host.innerHTML = String(model.get("_static") || "The explorer's kernel does not answer.");
    box.replaceChildren(host);
    box.style.height = "auto";
  };

  const open = (page: string): void => {
    if (frame) return;
    live = true;
    document.head.appendChild(hide);
    box.style.height = `${Number(model.get("height")) || 680}px`;
    frame = document.createElement("iframe");
    frame.title = "byocviz";
    frame.setAttribute("sandbox", "allow-scripts allow-downloads allow-modals");
    frame.setAttribute("allow", "fullscreen; clipboard-write");
    frame.srcdoc = page;
    box.replaceChildren(frame);
  };

  // After a restart nobody answers any more. What was drawn stays, and can be looked at.
  const notice = document.createElement("div");
  notice.className = "byocviz-gone";
  notice.setAttribute("role", "alert");
  /** The front end says that there is no kernel; without that, its silence may say so. */
  let cut = false;
  let waiting = 0;
  const say = (text: string): void => {
    if (notice.textContent !== text) notice.textContent = text;
    if (!text) notice.remove();
    else if (live && !notice.isConnected) el.insertBefore(notice, box);
  };
  const connection = (): void => {
    // The view's own class changes with the same event, perhaps after this.
    window.setTimeout(() => {
      const now = el.closest(".jupyter-widgets-disconnected") !== null;
      if (now === cut) return;
      cut = now;
      say(cut ? GONE : "");
      if (!cut) send({ type: frame ? "ready" : "page?" });
    }, 50);
  };
  const heard = (): void => {
    clearTimeout(waiting);
    waiting = 0;
    if (!cut) say("");
  };
  /** Whoever is told something answers, if only that it was heard. */
  const expect = (): void => {
    if (!waiting && !cut) waiting = window.setTimeout(() => say(SILENT), ANSWER);
  };
  const ask = window.setInterval(() => {
    if (!live || cut || waiting || document.hidden) return;
    send({ type: "there?" });
  }, EVERY);

  const post = (content: Record<string, unknown>, buffers: ArrayBuffer[] = []): void => {
    frame?.contentWindow?.postMessage({ byocviz: content, buffers }, "*", buffers);
  };

  const fromKernel = (content: Record<string, unknown>, views: DataView[]): void => {
    heard();
    if ((content.to && content.to !== id) || content.except === id || content.type === "heard") return;
    const buffers = (views ?? []).map(bytesOf);
    if (content.type === "page") {
      const digest = String(content.digest);
      if (!pages.has(digest)) pages.set(digest, unpack(buffers[0]));
      void pages.get(digest)!.then(open);
      return;
    }
    post(content, buffers);
  };

  const fromFrame = (event: MessageEvent): void => {
    if (!frame || event.source !== frame.contentWindow) return;
    const content = event.data?.byocviz;
    if (!content || typeof content !== "object") return;
    if (content.type === "ready") post({ type: "theme", dark: isDark() });
    if (content.type === "copy") void navigator.clipboard?.writeText(String(content.text)).catch(() => undefined);
    else send(content);
  };

  const theme = new MutationObserver(() => post({ type: "theme", dark: isDark() }));
  theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind", "class"] });
  const resized = (): void => {
    box.style.height = `${Number(model.get("height")) || 680}px`;
  };
  window.addEventListener("message", fromFrame);
  model.on("msg:custom", fromKernel as never);
  model.on("change:height", resized as never);
  model.on("comm_live_update", connection as never);
  const known = pages.get(String(model.get("_page")));
  if (known) void known.then(open);
  else send({ type: "page?" });
  const timer = window.setTimeout(still, PATIENCE);
  return () => {
    clearTimeout(timer);
    clearTimeout(waiting);
    clearInterval(ask);
    theme.disconnect();
    hide.remove();
    window.removeEventListener("message", fromFrame);
    model.off("msg:custom", fromKernel as never);
    model.off("change:height", resized as never);
    model.off("comm_live_update", connection as never);
    send({ type: "closed" });
  };
}

export default { render };
