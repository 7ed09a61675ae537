import type { ServerResponse } from "node:http";
import type { Board } from "./board.ts";

/** Milliseconds: a sign of life, and until a page that takes nothing is let go; it comes back by itself. */
const beat = 15_000;
const patience = 60_000;

/**
 * Tells a page what is new on a board, as server-sent events (WHATWG HTML, 9.2), until it leaves. A page that takes its
 * time is told less often, and then all at once: nothing is queued for it. Each event's id is the version, so that a page
 * which comes back says what it knows.
 */
export function streamBoard(response: ServerResponse, board: Board, from: string): void {
  let version = from;
  let stuck: NodeJS.Timeout | undefined;
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  // The answer to HEAD has no body.
  if (response.req.method === "HEAD") return void response.end();
  // At once, even where there is no news: the page shows that it is live.
  response.write("retry: 1000\n\n: hello\n\n");
  const tell = (): void => {
    if (stuck !== undefined || version === board.version) return;
    const news = board.since(version);
    version = news.version;
    write(`id: ${version}\ndata: ${JSON.stringify({ now: Date.now(), parts: news.parts })}\n\n`);
  };
  const write = (text: string): void => {
    if (response.write(text)) return;
    stuck = setTimeout(() => response.destroy(), patience);
  };
  const pulse = setInterval(() => stuck === undefined && write(": beat\n\n"), beat);
  const leave = board.read(tell);
  response.on("drain", () => {
    clearTimeout(stuck);
    stuck = undefined;
    tell();
  });
  response.on("close", () => {
    leave();
    clearInterval(pulse);
    clearTimeout(stuck);
  });
  tell();
}
