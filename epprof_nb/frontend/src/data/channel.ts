// The talk with Python over the widget's channel: questions are numbered, answers find theirs.

/** What anywidget hands over; only what is used. */
export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  send(content: unknown): void;
  on(event: "msg:custom", handler: Handler): void;
  off(event: "msg:custom", handler: Handler): void;
}

type Handler = (content: AnswerContent, buffers: DataView[]) => void;

interface AnswerContent {
  request?: number;
  error?: string;
  [key: string]: unknown;
}

export interface Answer {
  content: AnswerContent;
  bytes: Uint8Array<ArrayBuffer> | null;
}

export interface Message {
  type: string;
  [key: string]: unknown;
}

/** How long to wait before asking again: a message can be lost; and before giving up. */
const PATIENCE_MS = 4_000;
const SILENCE_MS = 30_000;
const SILENCE =
  "Python did not answer: the kernel is busy or gone. What is drawn stays; try again when it is idle.";

export class Talk {
  /** Hears whether Python leaves a question unanswered for longer than it should. */
  silent: (silent: boolean) => void = () => {};

  readonly #listeners = new Map<string, (content: AnswerContent) => void>();
  /** Hears the answer; null where there will be none. */
  readonly #waiting = new Map<number, (answer: Answer | null) => void>();
  #last = 0;

  constructor(private readonly model: Model) {
    model.on("msg:custom", this.#hear);
  }

  readonly #hear: Handler = (content, buffers) => {
    if (content.request === undefined) this.#listeners.get(String(content.type))?.(content);
    const done = this.#waiting.get(Number(content.request));
    const [view] = buffers;
    // The channel's buffer is its own: what is kept is a copy.
    const bytes = view
      ? new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength).slice()
      : null;
    done?.({ content, bytes });
  };

  /** Asks Python; the promise fails where Python says that it cannot answer, or says nothing. */
  async ask(message: Message): Promise<Answer> {
    const request = ++this.#last;
    const answer = await new Promise<Answer>((resolve, reject) => {
      const again = setTimeout(() => {
        this.silent(true);
        this.tell({ ...message, request });
      }, PATIENCE_MS);
      const silent = setTimeout(() => this.#waiting.get(request)?.(null), SILENCE_MS);
      this.#waiting.set(request, (answer) => {
        this.#waiting.delete(request);
        clearTimeout(again);
        clearTimeout(silent);
        if (!answer) return reject(new Error(SILENCE));
        this.silent(false);
        resolve(answer);
      });
      // Without a kernel there is no channel to send on: it counts as silence.
      this.tell({ ...message, request });
    });
    if (answer.content.error !== undefined) throw new Error(answer.content.error);
    return answer;
  }

  /** Calls back for what Python says of itself; one listener a type. */
  listen(type: string, heard: (content: AnswerContent) => void): void {
    this.#listeners.set(type, heard);
  }

  tell(message: Message): void {
    try {
      this.model.send(message);
    } catch {
      // Nobody is there to be told.
    }
  }

  /**
   * Hears no more, and lets go of everything. JupyterLab keeps a closed widget's model while its
   * kernel runs; and a model keeps what its attributes were before they were last set.
   */
  end(): void {
    this.model.off("msg:custom", this.#hear);
    this.model.set("mark", this.model.get("mark"));
    this.#listeners.clear();
    this.silent = () => {};
    for (const done of [...this.#waiting.values()]) done(null);
  }
}
