// Message channel between the widget and Python. Requests are numbered; replies carry the number.

/** The part of anywidget's model that is used here. */
export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  send(content: unknown): void;
  on(event: "msg:custom", handler: Handler): void;
  off(event: "msg:custom", handler: Handler): void;
}

type Handler = (content: ReplyContent, buffers: DataView[]) => void;

interface ReplyContent {
  request?: number;
  error?: string;
  [key: string]: unknown;
}

interface Reply {
  content: ReplyContent;
  bytes: Uint8Array<ArrayBuffer> | null;
}

export interface Message {
  type: string;
  [key: string]: unknown;
}

/** Time until a request is repeated, since messages can get lost, and until it fails. */
const RETRY_MS = 4_000;
const TIMEOUT_MS = 30_000;
const NO_ANSWER =
  "Python did not answer: the Jupyter kernel is busy or has stopped. The view stays as it is; try again when it is idle.";

export class Channel {
  /** Called with true when a reply is overdue, and with false when replies arrive again. */
  onSilence: (silent: boolean) => void = () => {};

  readonly #listeners = new Map<string, (content: ReplyContent) => void>();
  /** Callbacks by request number; called with null if no reply will come. */
  readonly #pending = new Map<number, (answer: Reply | null) => void>();
  #lastRequest = 0;

  constructor(private readonly model: Model) {
    model.on("msg:custom", this.#onMessage);
  }

  readonly #onMessage: Handler = (content, buffers) => {
    if (content.request === undefined) this.#listeners.get(String(content.type))?.(content);
    const settle = this.#pending.get(Number(content.request));
    const [view] = buffers;
    // The buffer belongs to the channel, so keep a copy.
    const bytes = view
      ? new Uint8Array(view.buffer as ArrayBuffer, view.byteOffset, view.byteLength).slice()
      : null;
    settle?.({ content, bytes });
  };

  /** Send a request. The promise rejects if Python answers with an error or not at all. */
  async request(message: Message): Promise<Reply> {
    const request = ++this.#lastRequest;
    const reply = await new Promise<Reply>((resolve, reject) => {
      const retry = setTimeout(() => {
        this.onSilence(true);
        this.send({ ...message, request });
      }, RETRY_MS);
      const timeout = setTimeout(() => this.#pending.get(request)?.(null), TIMEOUT_MS);
      this.#pending.set(request, (reply) => {
        this.#pending.delete(request);
        clearTimeout(retry);
        clearTimeout(timeout);
        if (!reply) return reject(new Error(NO_ANSWER));
        this.onSilence(false);
        resolve(reply);
      });
      // Without a kernel there is no channel to send on; the timeout reports it.
      this.send({ ...message, request });
    });
    if (reply.content.error !== undefined) throw new Error(reply.content.error);
    return reply;
  }

  /** Register the listener for messages of a type that Python sends on its own. */
  on(type: string, listener: (content: ReplyContent) => void): void {
    this.#listeners.set(type, listener);
  }

  send(message: Message): void {
    try {
      this.model.send(message);
    } catch {
      // The kernel is gone, so there is no receiver.
    }
  }

  /**
   * Stop listening and release everything. JupyterLab keeps the model of a closed widget while its
   * kernel runs, and a model keeps the previous values of its attributes until they are set again.
   */
  close(): void {
    this.model.off("msg:custom", this.#onMessage);
    this.model.set("mark", this.model.get("mark"));
    this.#listeners.clear();
    this.onSilence = () => {};
    for (const settle of [...this.#pending.values()]) settle(null);
  }
}
