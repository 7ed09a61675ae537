import type { ServerResponse } from "node:http";
import type { ErrorCode } from "#errors/codes.ts";
import { KcoreError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { pageTitle } from "#tui/html/head.ts";
import { drawFleet, drawFleetItem, fleetPageParts, type FleetState } from "./fleet-page.ts";
import { PolledParts, streamParts, type LiveParts } from "./live-parts.ts";
import { drawPage, drawRefusal, type PageFrame, type WebPage } from "./page.ts";
import type { RunFeed } from "./run-feed.ts";
import { drawRunList, drawRunsPage, type ListedRun, type RunsQuery } from "./runs-page.ts";
import { SharedResources } from "./shared-resources.ts";

/** The cluster's state, kept up to date while a browser shows it. */
export interface FleetFeed {
  /** The last known state, also while no controller answers. */
  readonly state: () => FleetState;
  /** Calls back after each change, until `close`. */
  readonly onNews: (call: () => void) => void;
  close(): void;
}

/** The sources of all pages; no page changes anything in them. */
export interface WebSources {
  readonly listRuns: (query: RunsQuery) => Promise<readonly ListedRun[]>;
  /** All states of runs, for the filter of the list. */
  readonly runStates: readonly string[];
  /** @throws KcoreError RUN_UNKNOWN, RUN_RECORD_CORRUPT */
  readonly openRun: (id: string) => Promise<RunFeed>;
  /** The run's report as HTML. @throws KcoreError RUN_UNKNOWN, RUN_RECORD_CORRUPT */
  readonly report: (id: string) => Promise<string>;
  /** @throws KcoreError PKI_CONTEXT_UNKNOWN, CLUSTER_UNKNOWN without a cluster or a known controller; API_UNREACHABLE when none answers */
  readonly openFleet: () => Promise<FleetFeed>;
}

/** Errors that have their own HTTP status. */
const refusals: Partial<Record<ErrorCode, { readonly status: number; readonly title?: string }>> = {
  RUN_UNKNOWN: { status: 404 },
  CLUSTER_UNKNOWN: { status: 503, title: "No cluster yet" },
  PKI_CONTEXT_UNKNOWN: { status: 503, title: "No cluster yet" },
  API_UNREACHABLE: { status: 503, title: "No controller answers" },
};

/** Milliseconds between two drawings of a page that a browser shows; the fleet's ages grow even without news. */
const redrawMs = { list: 1000, fleet: 5000 } as const;
/** Milliseconds until an unused run or fleet is closed. */
const lingerMs = 30_000;
/** Runs on one page of the list. */
const mostRuns = 100;
/** A report has its own content security policy in the page. */
const reportHeaders = {
  "content-security-policy": "frame-ancestors 'none'",
  "content-disposition": "attachment",
} as const;

/** Answers requests that the guard has admitted, and refusals. */
export class Routes {
  readonly #sources: WebSources;
  readonly #frame: PageFrame;
  readonly #runs: SharedResources<RunFeed>;
  readonly #lists: SharedResources<PolledParts>;
  readonly #fleet: SharedResources<PolledFleet>;

  constructor(sources: WebSources, frame: PageFrame) {
    this.#sources = sources;
    this.#frame = frame;
    this.#runs = new SharedResources(sources.openRun, lingerMs);
    this.#lists = new SharedResources((query) => Promise.resolve(this.#list(query)), 0);
    this.#fleet = new SharedResources(async () => new PolledFleet(await sources.openFleet(), frame.root), lingerMs);
  }

  close(): void {
    for (const shared of [this.#runs, this.#lists, this.#fleet]) shared.closeAll();
  }

  /** Answers an admitted request. `lastSeen`: the version that a reconnecting browser has. Never throws: a page shows the failure. */
  async answer(url: URL, response: ServerResponse, lastSeen: string | undefined): Promise<void> {
    try {
      await this.#answer(url, response, lastSeen ?? url.searchParams.get("from") ?? "");
    } catch (error) {
      if (response.headersSent) {
        response.destroy();
        return;
      }
      const problems = error instanceof KcoreError ? error.problems : [];
      const [known] = problems.flatMap(({ code }) => refusals[code] ?? []);
      const messages = problems.map(
        ({ message, code, hint }) => `${message} [${code}]${hint === undefined ? "" : `: ${hint}`}`,
      );
      this.#refuse(response, known?.status ?? 500, messages.join("; ") || String(error), known?.title);
    }
  }

  #refuse(response: ServerResponse, status: number, why: string, title?: string): void {
    send(response, drawRefusal(why, this.#frame, title), { status });
  }

  /** Refuses a request that the guard did not admit; the answer must not contain the secret path. */
  refuse(response: ServerResponse, status: number, why: string): void {
    send(response, drawRefusal(why, { ...this.#frame, root: "" }), { status });
  }

  async #answer(url: URL, response: ServerResponse, known: string): Promise<void> {
    const words = pathParts(url.pathname);
    if (!words) return this.#refuse(response, 400, `this is no address: ${url.pathname}`);
    const [page = "", id = "", ...rest] = words;
    if (page === "" && url.pathname === "/") return this.#showRuns(url.searchParams, response);
    if (page === "news" && id === "")
      return this.#stream(this.#lists, url.searchParams.toString(), { response, known });
    if (page === "runs" && id !== "") return this.#answerRun(id, rest, { url, response, known });
    if (page === "fleet") return this.#answerFleet([id, ...rest], { response, known });
    this.#refuse(response, 404, `there is nothing at ${url.pathname}`);
  }

  // ---- the list of runs ---------------------------------------------------------------------------------------------

  async #showRuns(words: URLSearchParams, response: ServerResponse): Promise<void> {
    const query = runsQuery(words);
    const runs = await this.#sources.listRuns(query);
    const body = drawRunsPage({ runs, query, states: this.#sources.runStates, root: this.#frame.root });
    // Pages of older runs do not change.
    const news = query.before === undefined && { path: `${this.#frame.root}/news?${words.toString()}`, version: "" };
    this.#send(response, { title: "Runs", body, entry: "runs", ...(news && { news }) });
  }

  #list(words: string): PolledParts {
    const query = runsQuery(new URLSearchParams(words));
    const { root } = this.#frame;
    const draw = async (): Promise<string> => drawRunList(await this.#sources.listRuns(query), query, root).source;
    return new PolledParts(async () => [["runs", await draw()]], redrawMs.list);
  }

  // ---- a run --------------------------------------------------------------------------------------------------------

  async #answerRun(
    id: string,
    [what, ...rest]: readonly string[],
    { url, response, known }: { url: URL; response: ServerResponse; known: string },
  ): Promise<void> {
    if (what === "news") return this.#stream(this.#runs, id, { response, known });
    if (what === "report.html") return send(response, await this.#sources.report(id), { headers: reportHeaders });
    const { value: feed, done } = await this.#runs.use(id);
    try {
      const { model, parts } = feed;
      const base = `${this.#frame.root}/runs/${id}`;
      if (what === undefined) {
        const { body, version } = feed.page(base);
        const news = { path: `${base}/news`, version };
        this.#send(response, { title: pageTitle(model, feed.isLive), body, entry: "runs", news });
        return;
      }
      if (what === "find")
        return sendJson(
          response,
          parts.find(model, (url.searchParams.get("words") ?? "").split(/\s+/).filter(Boolean)),
        );
      const [row = "", bars] = rest;
      const found = what !== "rows" ? undefined : bars === "bars" ? parts.bars(model, row) : parts.drawBody(model, row);
      if (found === undefined) return this.#refuse(response, 404, `there is nothing at ${url.pathname}`);
      if ("source" in found) send(response, found.source);
      else sendJson(response, found);
    } finally {
      done();
    }
  }

  // ---- the fleet ----------------------------------------------------------------------------------------------------

  async #answerFleet(
    [section = "", key = ""]: readonly string[],
    { response, known }: { response: ServerResponse; known: string },
  ): Promise<void> {
    if (section === "news") return this.#stream(this.#fleet, "", { response, known });
    const { value: fleet, done } = await this.#fleet.use("");
    const { root } = this.#frame;
    try {
      const now = Date.now();
      const state = fleet.feed.state();
      if (section === "") {
        await fleet.refresh();
        const news = { path: `${root}/fleet/news`, version: fleet.live.version };
        return this.#send(response, { title: "Fleet", body: drawFleet(state, now, root), entry: "fleet", news });
      }
      const item = drawFleetItem(state, { section, key, now, root });
      if (!item) return this.#refuse(response, 404, `the cluster knows no “${key}” among its ${section}`);
      this.#send(response, { ...item, entry: "fleet" });
    } finally {
      done();
    }
  }

  async #stream<Value extends { readonly live: LiveParts; close(): void }>(
    shared: SharedResources<Value>,
    name: string,
    { response, known }: { response: ServerResponse; known: string },
  ): Promise<void> {
    const { value, done } = await shared.use(name);
    response.on("close", done);
    if (response.destroyed) return done();
    streamParts(response, value.live, known);
  }

  #send(response: ServerResponse, page: WebPage): void {
    send(response, drawPage(page, this.#frame));
  }
}

/** The parts of the fleet's page, redrawn at each change and every few seconds, because ages grow. */
class PolledFleet extends PolledParts {
  readonly feed: FleetFeed;

  constructor(feed: FleetFeed, root: string) {
    super(() => fleetPageParts(feed.state(), Date.now(), root), redrawMs.fleet);
    this.feed = feed;
    feed.onNews(() => void this.refresh());
  }

  override close(): void {
    super.close();
    this.feed.close();
  }
}

/** The decoded parts of a path between its slashes; undefined for a malformed path. */
function pathParts(path: string): readonly string[] | undefined {
  try {
    return path.split("/").slice(1).map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

function runsQuery(words: URLSearchParams): RunsQuery {
  const given = (name: string) => words.get(name)?.trim() || undefined;
  return {
    ...omitUndefined({ state: given("state"), node: given("node"), before: given("before") }),
    limit: mostRuns,
  };
}

function send(
  response: ServerResponse,
  text: string,
  {
    status = 200,
    headers = {},
  }: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
): void {
  response.writeHead(status, { "content-type": "text/html; charset=utf-8", ...headers });
  response.end(text);
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}
