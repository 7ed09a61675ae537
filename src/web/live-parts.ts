import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";

/** Parts of a page by the ids of their elements. */
export type PageParts = Iterable<readonly [id: string, html: string]>;

/** The parts of a page that have changed since a version, and the version that includes them. */
interface PartChanges {
  readonly version: string;
  readonly parts: readonly (readonly [id: string, html: string])[];
}

/**
 * The parts of a page that change while browsers show it. Each part has the number of its last change: a browser gets the
 * changes since its version, and the server keeps no state of browsers.
 */
export class LiveParts {
  /** Distinguishes this process' versions from the versions of an earlier process. */
  readonly #id = randomBytes(6).toString("hex");
  readonly #parts = new Map<string, { html: string; at: number }>();
  readonly #readers = new Set<() => void>();
  #at = 0;

  get version(): string {
    return `${this.#id}.${this.#at}`;
  }

  /** Whether a browser reads the parts now. */
  get isRead(): boolean {
    return this.#readers.size > 0;
  }

  /** Stores the present parts, and calls the readers if a part has changed. */
  show(parts: PageParts): void {
    const at = this.#at + 1;
    for (const [id, html] of parts) {
      const known = this.#parts.get(id);
      if (known?.html === html) continue;
      this.#parts.set(id, { html, at });
      this.#at = at;
    }
    if (this.#at === at) for (const call of this.#readers) call();
  }

  /** The changes since a version; all parts for a version of another process. */
  since(version: string): PartChanges {
    const [id, text] = version.split(".");
    const known = id === this.#id ? Number(text) || 0 : 0;
    const parts: [id: string, html: string][] = [];
    for (const [name, { html, at }] of this.#parts) if (at > known) parts.push([name, html]);
    return { version: this.version, parts };
  }

  /** Calls back after each change until the returned function is called. */
  read(onNews: () => void): () => void {
    this.#readers.add(onNews);
    return () => this.#readers.delete(onNews);
  }
}

/** Live parts that are redrawn while a browser reads them. */
export class PolledParts {
  readonly live = new LiveParts();
  readonly #draw: () => Promise<PageParts> | PageParts;
  readonly #timer: NodeJS.Timeout;
  #isDrawing = false;

  /** `every`: milliseconds between two drawings. */
  constructor(draw: () => Promise<PageParts> | PageParts, every: number) {
    this.#draw = draw;
    this.#timer = setInterval(() => void (this.live.isRead && this.refresh()), every).unref();
  }

  /** Draws the parts now, unless a drawing is under way. Never throws: after a failure the parts stay as they were. */
  async refresh(): Promise<void> {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    try {
      this.live.show(await this.#draw());
    } catch {
      // The next drawing may succeed.
    } finally {
      this.#isDrawing = false;
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

/** Milliseconds between two signs of life. */
const beatMs = 15_000;
/** Milliseconds until a browser that reads nothing is cut off; the browser reconnects by itself. */
const stuckMs = 60_000;

/**
 * Streams the changes of a page as server-sent events (WHATWG HTML, 9.2) until the browser leaves, from the version `from` on. A slow browser gets
 * fewer events, each with all changes; nothing is queued. The id of an event is the version, which a reconnecting browser sends back.
 */
export function streamParts(response: ServerResponse, live: LiveParts, from: string): void {
  let version = from;
  let stuck: NodeJS.Timeout | undefined;
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  // The answer to HEAD has no body.
  if (response.req.method === "HEAD") return void response.end();
  // Written at once, even without news, so that the page shows that it is live.
  response.write("retry: 1000\n\n: hello\n\n");
  const sendChanges = (): void => {
    if (stuck !== undefined || version === live.version) return;
    const news = live.since(version);
    version = news.version;
    write(`id: ${version}\ndata: ${JSON.stringify({ now: Date.now(), parts: news.parts })}\n\n`);
  };
  const write = (text: string): void => {
    if (response.write(text)) return;
    stuck = setTimeout(() => response.destroy(), stuckMs);
  };
  const pulse = setInterval(() => stuck === undefined && write(": beat\n\n"), beatMs);
  const leave = live.read(sendChanges);
  response.on("drain", () => {
    clearTimeout(stuck);
    stuck = undefined;
    sendChanges();
  });
  response.on("close", () => {
    leave();
    clearInterval(pulse);
    clearTimeout(stuck);
  });
  sendChanges();
}
