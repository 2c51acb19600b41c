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

/** Calls back when what is drawn now is on the screen. */
export function afterFrame(then: () => void): void {
  requestAnimationFrame(() => void nextTask().then(then));
}
