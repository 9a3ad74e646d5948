// Draws when the browser next paints, once however often it was asked for.

export class Frames {
  #asked = 0;
  #ended = false;

  constructor(private readonly draw: () => void) {}

  ask(): void {
    if (this.#asked || this.#ended) return;
    this.#asked = requestAnimationFrame(() => {
      this.#asked = 0;
      this.draw();
    });
  }

  /** Nothing is drawn any more, whoever asks: an answer may still be on its way. */
  destroy(): void {
    cancelAnimationFrame(this.#asked);
    this.#ended = true;
  }
}
