import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import type { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import type { Cluster } from "./kubeconfig.ts";
import { clip } from "./clip.ts";
import { pageOf } from "./objects.ts";
import { overflow, KubeRefusal, Status, unreachable } from "./refusals.ts";
import { pathOf, type Call, type Target } from "./target.ts";

/** Milliseconds without a byte. */
const SILENCE = 30_000;
/** Bytes of one answer, and of all pages of a list; etcd limits a request, and so an object, to 1.5 MiB. */
const REPLY_LIMIT = 8 << 20;
const LIST_LIMIT = 32 << 20;
/** The most pages of a list, and objects per page. */
const PAGES = 100;
const PAGE_SIZE = 250;
/** Milliseconds for one whole answer: `SILENCE` never ends a server that sends a byte now and then. */
const ANSWER_LIMIT = 120_000;

const methods = { get: "GET", list: "GET", create: "POST", patch: "PATCH", delete: "DELETE" } as const;

/** Sends requests to one cluster's API server; never repeats one, since its callers do. */
export class KubeApi {
  readonly cluster: Cluster;
  readonly #signal: AbortSignal;

  constructor(cluster: Cluster, signal: AbortSignal) {
    this.cluster = cluster;
    this.#signal = signal;
  }

  /** The answer's object. @throws KubeRefusal, Unreachable; KcoreError KUBECONFIG_… ; the signal's reason when it was stopped */
  async call<Answer>(target: Target, call: Call): Promise<Answer> {
    return this.#send<Answer>(pathOf(target), call, { target });
  }

  /** Reads a path that belongs to no resource, such as the server's version. */
  async read<Answer>(path: string, shape: z.ZodType): Promise<Answer> {
    return this.#send<Answer>(path, { verb: "get", shape });
  }

  /** The object, or undefined where there is none. */
  async find<Answer>(target: Target, shape: z.ZodType): Promise<Answer | undefined> {
    try {
      return await this.call<Answer>(target, { verb: "get", shape });
    } catch (error) {
      if (error instanceof KubeRefusal && error.status === 404) return undefined;
      throw error;
    }
  }

  /** All pages of a list; `shape`: of one item. */
  async list<Item>(
    target: Target,
    { query, shape }: { readonly query: Readonly<Record<string, string>>; readonly shape: z.ZodType },
  ): Promise<readonly Item[]> {
    const items: Item[] = [];
    const read = { bytes: 0 };
    let token: string | undefined = "";
    for (let pages = 0; pages < PAGES && read.bytes <= LIST_LIMIT; pages++) {
      const call: Call = {
        verb: "list",
        query: { ...query, limit: String(PAGE_SIZE), ...(token !== "" && { continue: token }) },
        shape: pageOf(shape, PAGE_SIZE),
      };
      const page: Page<Item> = await this.#send<Page<Item>>(pathOf(target), call, { target, read });
      for (const item of page.items ?? []) items.push(item);
      token = page.metadata?.continue || undefined;
      if (token === undefined) return items;
    }
    throw overflow(this.cluster.server, `a list of more than ${PAGES} pages or ${LIST_LIMIT >> 20} MiB`);
  }

  /** Adds the bytes of the answer to `read`. */
  async #send<Answer>(
    path: string,
    call: Call,
    { target, read }: { readonly target?: Target; readonly read?: { bytes: number } } = {},
  ): Promise<Answer> {
    this.#signal.throwIfAborted();
    const { server } = this.cluster;
    const url = new URL(`${server}${path}${call.query ? `?${new URLSearchParams(call.query).toString()}` : ""}`);
    const { headers, ...options } = await this.cluster.requestOptions();
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const asked = (url.protocol === "https:" ? requestHttps : requestHttp)(
      url,
      {
        ...options,
        method: methods[call.verb],
        headers: {
          ...(headers as Record<string, string>),
          Accept: "application/json",
          "User-Agent": "kcore",
          // Node sets no length for the body of a DELETE: the server would then ignore the body, `dryRun` included.
          ...(body !== undefined && {
            "Content-Type": call.contentType ?? "application/json",
            "Content-Length": Buffer.byteLength(body),
          }),
        },
        signal: this.#signal,
      },
      resolve,
    );
    asked.once("error", reject).setTimeout(SILENCE, () => asked.destroy(new Error(`silent for ${SILENCE / 1000} s`)));
    const late = setTimeout(
      () => asked.destroy(overflow(server, `an answer for more than ${ANSWER_LIMIT / 1000} s`)),
      ANSWER_LIMIT,
    );
    asked.end(body);
    try {
      const reply = await promise;
      const [status = 0, text] = [reply.statusCode, await readBody(reply, server)];
      if (read) read.bytes += text.length;
      if (status >= 200 && status < 300) return checked(JSON.parse(text), call.shape) as Answer;
      throw new KubeRefusal(statusOf(status, text), { server, verb: call.verb, target });
    } catch (error) {
      this.#signal.throwIfAborted();
      throw error instanceof KcoreError ? error : unreachable(server, error);
    } finally {
      clearTimeout(late);
    }
  }
}

interface Page<Item> {
  readonly items?: readonly Item[] | null;
  readonly metadata?: { readonly continue?: string };
}

/** Checks an answer by its shape; returns the answer itself, with fields that the shape does not name. */
function checked(answer: unknown, shape: z.ZodType | undefined): unknown {
  const problem = shape?.safeParse(answer).error?.issues[0];
  if (problem === undefined) return answer;
  throw new Error(clip(`it says what no API server says: ${[...problem.path, problem.message].join(": ")}`));
}

async function readBody(reply: IncomingMessage, server: string): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of reply as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > REPLY_LIMIT) throw overflow(server, `an answer of more than ${REPLY_LIMIT >> 20} MiB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The server's Status of a refusal, or one made of the answer of a proxy before the server. */
function statusOf(code: number, text: string): Status {
  try {
    const found = Status.safeParse(JSON.parse(text));
    if (found.success) return { ...found.data, code };
  } catch {
    // No JSON: a proxy's page.
  }
  return { code, message: text.slice(0, 200).trim() || `HTTP ${code}` };
}
