/** Waiting for the browser. */

/** Until all tasks that wait now have run. */
export function nextTask(): Promise<void> {
  return new Promise((go) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      go();
    };
    port2.postMessage(0);
  });
}

export function sleep(ms: number): Promise<void> {
  return new Promise((go) => setTimeout(go, ms));
}

/** Calls back when what is drawn now is on the screen. */
export function afterFrame(then: () => void): void {
  requestAnimationFrame(() => void nextTask().then(then));
}

/** Until all of the page is there: the script runs before the data that stands behind it. */
export function parsed(): Promise<void> {
  if (document.readyState !== "loading") return Promise.resolve();
  return new Promise((go) => document.addEventListener("DOMContentLoaded", () => go(), { once: true }));
}
