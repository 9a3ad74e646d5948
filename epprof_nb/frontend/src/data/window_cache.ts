// Cache of event windows; asks Python on a miss. At most one request is in flight and only the
// latest pending one is kept, so that Python never lags behind.

import { clamp, type Range } from "../base/time_scale.ts";
import type { DataSource, WindowRequest } from "./data_source.ts";
import type { Events } from "./events.ts";

/** Share of the window requested in addition on both sides, so that small moves need no request. */
const MARGIN = 0.25;
/** Share of the window: a margin smaller than this triggers the next request early. */
const EDGE = 0.08;
/** Factor by which rectangles may be wider than a pixel before the window is requested again. */
const BLUR = 1.5;
const CAPACITY = 12;
const RETRY_MS = 2000;
/** Idle time before a prefetch, and between two prefetches. */
const IDLE_MS = 200;
const SILENT = "no answer from Python: showing the events loaded so far";

/** Events of a window; `view` includes the margins. */
interface CachedWindow extends WindowRequest {
  events: Events;
}

export class WindowCache {
  /** Most recently used windows first. */
  #windows: CachedWindow[] = [];
  #first: CachedWindow | null = null;
  /** Window in view when the highlight changed, until it was loaded again. */
  #dropped: CachedWindow | null = null;
  #queued: WindowRequest | null = null;
  #inFlight: WindowRequest | null = null;
  /** Window in view now. */
  #current: WindowRequest | null = null;
  #round = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  /** Whether the status line reports a missing answer. */
  #unanswered = false;
  #ended = false;

  constructor(
    private readonly source: DataSource,
    private readonly whole: Range,
    private readonly onLoad: (events: Events, sent: Range) => void,
    private readonly onStatus: (text: string) => void,
  ) {}

  /** Add events that are already loaded. */
  add(request: WindowRequest, events: Events): void {
    this.#first = { ...request, events };
    this.#store(this.#first, 0);
  }

  request(request: WindowRequest): void {
    clearTimeout(this.#idle);
    this.#current = request;
    const hit = this.#windows.find((cached) => covers(cached, request, this.whole));
    if (hit) {
      this.#queued = null;
      if (hit !== this.#windows[0]) {
        this.#windows = [hit, ...this.#windows.filter((cached) => cached !== hit)];
        this.onLoad(hit.events, hit.view);
      }
      if (nearEdge(hit, request, this.whole) && !this.#inFlight) void this.#fetch(request, true);
      else this.#prefetch();
      return;
    }
    this.#queued = request;
    // After a missing answer every move tries again, but no faster than the retry interval.
    if (!this.#inFlight || this.#unanswered) void this.#fetch(request, true, this.#unanswered);
  }

  /** Drop all windows, because the highlighted events have changed. */
  clear(): void {
    this.#dropped = this.#windows[0] ?? this.#dropped;
    this.#windows = [];
    this.#first = null;
    this.#round++;
    this.#inFlight = null;
  }

  destroy(): void {
    this.#ended = true;
    this.clear();
    clearTimeout(this.#retry);
    clearTimeout(this.#idle);
  }

  async #fetch(request: WindowRequest, show: boolean, again = false): Promise<void> {
    const round = this.#round;
    const asked = this.#extended(request);
    this.#inFlight = request;
    this.#unanswered = false;
    clearTimeout(this.#retry);
    // Messages can get lost: retry once, then wait until an answer arrives.
    this.#retry = setTimeout(() => {
      if (again) {
        this.#unanswered = true;
        this.onStatus(SILENT);
      } else void this.#fetch(this.#queued ?? request, show, true);
    }, RETRY_MS);
    let events: Events | null = null;
    let problem = "";
    try {
      events = await this.source.window(asked);
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error);
    }
    if (this.#ended || round !== this.#round) return;
    clearTimeout(this.#retry);
    this.onStatus(problem);
    this.#inFlight = null;
    if (events) {
      this.#dropped = null;
      const loaded = { ...asked, events };
      const isUseful = show && this.#isUseful(loaded);
      // A prefetched window goes behind the one in view.
      this.#store(loaded, isUseful ? 0 : 1);
      if (isUseful) this.onLoad(events, loaded.view);
    }
    const next = this.#queued;
    this.#queued = null;
    if (next && next !== request) this.request(next);
    else if (events) this.#prefetch();
  }

  /**
   * Window to request. After a change of the highlight it is the one that was in view, so that its
   * rectangles stay the same.
   */
  #extended(request: WindowRequest): WindowRequest {
    if (!this.#dropped || !covers(this.#dropped, request, this.whole))
      return withMargin(request, this.whole);
    const { view, width, lanes } = this.#dropped;
    return { view, width, lanes };
  }

  /**
   * Whether a loaded window covers the view, or shows part of it when no cached window covers it.
   */
  #isUseful(loaded: CachedWindow): boolean {
    const current = this.#current;
    if (!current || covers(loaded, current, this.whole)) return true;
    return (
      overlaps(loaded, current) &&
      !this.#windows.some((cached) => covers(cached, current, this.whole))
    );
  }

  /** Store a window and evict the least recently used one, but never the first one. */
  #store(cached: CachedWindow, at: number): void {
    this.#windows.splice(at, 0, cached);
    if (this.#windows.length <= CAPACITY) return;
    const last = this.#windows.length - 1;
    this.#windows.splice(this.#windows[last] === this.#first ? last - 1 : last, 1);
  }

  /** Request a window that is likely to be needed next, once nothing else is pending. */
  #prefetch(): void {
    clearTimeout(this.#idle);
    // A file contains its events, and inflates only those in view.
    if (!this.source.live) return;
    const next =
      this.#current &&
      likelyNext(this.#current, this.whole).find(
        (step) => !this.#windows.some((cached) => covers(cached, step, this.whole)),
      );
    if (!next) return;
    this.#idle = setTimeout(() => {
      if (!this.#inFlight) void this.#fetch(next, false);
    }, IDLE_MS);
  }
}

/** Window extended by the margins. */
function withMargin(request: WindowRequest, whole: Range): WindowRequest {
  const length = request.view.end - request.view.start;
  const start = Math.max(
    request.view.start - length * MARGIN,
    Math.min(whole.start, request.view.start),
  );
  const end = Math.min(request.view.end + length * MARGIN, Math.max(whole.end, request.view.end));
  return { ...request, view: { start, end }, width: (request.width * (end - start)) / length };
}

/** Windows likely to be requested next: zoom in, pan either way, zoom out. */
function likelyNext(request: WindowRequest, whole: Range): WindowRequest[] {
  const { start, end } = request.view;
  const half = (end - start) / 2;
  const views = [
    { start: start + half / 2, end: end - half / 2 },
    { start: start + half, end: end + half },
    { start: start - half, end: end - half },
    { start: start - half, end: end + half },
  ];
  return views.map((view) => ({ ...request, view: clamp(view, whole) }));
}

/** Whether a cached window has all that a request needs. */
function covers(cached: CachedWindow, request: WindowRequest, whole: Range): boolean {
  const from = Math.max(request.view.start, whole.start);
  const to = Math.min(request.view.end, whole.end);
  if (cached.view.start > from || cached.view.end < to) return false;
  if (
    cached.lanes &&
    (!request.lanes || request.lanes[0] < cached.lanes[0] || request.lanes[1] > cached.lanes[1])
  ) {
    return false;
  }
  if (!cached.events.merged) return true;
  const has = (cached.view.end - cached.view.start) / cached.width;
  const needs = (request.view.end - request.view.start) / request.width;
  return has <= needs * BLUR;
}

/** Whether the view is close to an edge of a cached window beyond which there is more. */
function nearEdge(cached: CachedWindow, request: WindowRequest, whole: Range): boolean {
  const spare = (request.view.end - request.view.start) * EDGE;
  return (
    (cached.view.start > request.view.start - spare && cached.view.start > whole.start) ||
    (cached.view.end < request.view.end + spare && cached.view.end < whole.end)
  );
}

function overlaps(cached: WindowRequest, current: WindowRequest): boolean {
  return cached.view.start < current.view.end && cached.view.end > current.view.start;
}
