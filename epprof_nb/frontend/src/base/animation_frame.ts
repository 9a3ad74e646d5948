// Scheduler that draws once per animation frame, however often a frame is requested.

export class FrameScheduler {
  #pending = 0;
  #destroyed = false;

  constructor(private readonly draw: () => void) {}

  request(): void {
    if (this.#pending || this.#destroyed) return;
    this.#pending = requestAnimationFrame(() => {
      this.#pending = 0;
      this.draw();
    });
  }

  /** Stop drawing. Requests that arrive later, such as from a pending answer, are ignored. */
  destroy(): void {
    cancelAnimationFrame(this.#pending);
    this.#destroyed = true;
  }
}
