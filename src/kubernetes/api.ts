import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import type { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import type { KubeCluster } from "./kubeconfig.ts";
import { clipText } from "./clip.ts";
import { pageShape } from "./objects.ts";
import { overflowError, KubeRefusal, KubeStatus, unreachableError } from "./refusals.ts";
import { apiPath, type ApiCall, type ApiTarget } from "./target.ts";

/** The maximum time in which no byte arrives, in milliseconds. */
const SILENCE_LIMIT = 30_000;
/** The maximum number of bytes of one answer; etcd limits a request, and so an object, to 1.5 MiB. */
const REPLY_LIMIT = 8 << 20;
/** Bytes of a list after which no further page is read. */
const LIST_LIMIT = 32 << 20;
const MOST_PAGES = 100;
const PAGE_SIZE = 250;
/** Milliseconds for one whole answer: `SILENCE_LIMIT` never ends a server that sends a byte now and then. */
const ANSWER_LIMIT = 120_000;

const methods = { get: "GET", list: "GET", create: "POST", patch: "PATCH", delete: "DELETE" } as const;

/** Sends requests to one cluster's API server, each once: the callers repeat them. */
export class KubeApi {
  readonly cluster: KubeCluster;
  readonly #signal: AbortSignal;

  constructor(cluster: KubeCluster, signal: AbortSignal) {
    this.cluster = cluster;
    this.#signal = signal;
  }

  /** The answer's object. @throws KubeRefusal, Unreachable; KcoreError KUBERNETES_UNTRUSTED, KUBERNETES_OVERFLOW, KUBECONFIG_…; the signal's reason */
  async call<Answer>(target: ApiTarget, call: ApiCall): Promise<Answer> {
    return this.#send<Answer>(apiPath(target), call, { target });
  }

  /** Reads a path that belongs to no resource, such as the server's version. */
  async read<Answer>(path: string, shape: z.ZodType): Promise<Answer> {
    return this.#send<Answer>(path, { verb: "get", shape });
  }

  /** The object; undefined if it does not exist. @throws as `call` */
  async find<Answer>(target: ApiTarget, shape: z.ZodType): Promise<Answer | undefined> {
    try {
      return await this.call<Answer>(target, { verb: "get", shape });
    } catch (error) {
      if (error instanceof KubeRefusal && error.status === 404) return undefined;
      throw error;
    }
  }

  /** The objects of all pages of a list. `shape`: the shape of one object. @throws as `call` */
  async list<Item>(
    target: ApiTarget,
    { query, shape }: { readonly query: Readonly<Record<string, string>>; readonly shape: z.ZodType },
  ): Promise<readonly Item[]> {
    const items: Item[] = [];
    const read = { bytes: 0 };
    let token: string | undefined = "";
    for (let pages = 0; pages < MOST_PAGES && read.bytes <= LIST_LIMIT; pages++) {
      const call: ApiCall = {
        verb: "list",
        query: { ...query, limit: String(PAGE_SIZE), ...(token !== "" && { continue: token }) },
        shape: pageShape(shape, PAGE_SIZE),
      };
      const page: ListPage<Item> = await this.#send<ListPage<Item>>(apiPath(target), call, { target, read });
      for (const item of page.items ?? []) items.push(item);
      token = page.metadata?.continue || undefined;
      if (token === undefined) return items;
    }
    throw overflowError(this.cluster.server, `a list of more than ${MOST_PAGES} pages or ${LIST_LIMIT >> 20} MiB`);
  }

  /** Sends one request; adds the bytes of its answer to `read`. */
  async #send<Answer>(
    path: string,
    call: ApiCall,
    { target, read }: { readonly target?: ApiTarget; readonly read?: { bytes: number } } = {},
  ): Promise<Answer> {
    this.#signal.throwIfAborted();
    const { server } = this.cluster;
    const url = new URL(`${server}${path}${call.query ? `?${new URLSearchParams(call.query).toString()}` : ""}`);
    const { headers, ...options } = await this.cluster.requestOptions();
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const request = (url.protocol === "https:" ? requestHttps : requestHttp)(
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
    request
      .once("error", reject)
      .setTimeout(SILENCE_LIMIT, () => request.destroy(new Error(`silent for ${SILENCE_LIMIT / 1000} s`)));
    const late = setTimeout(
      () => request.destroy(overflowError(server, `an answer for more than ${ANSWER_LIMIT / 1000} s`)),
      ANSWER_LIMIT,
    );
    request.end(body);
    try {
      const reply = await promise;
      const [status = 0, text] = [reply.statusCode, await readBody(reply, server)];
      if (read) read.bytes += Buffer.byteLength(text);
      if (status >= 200 && status < 300) return checkShape(JSON.parse(text), call.shape) as Answer;
      throw new KubeRefusal(refusalStatus(status, text), { server, verb: call.verb, target });
    } catch (error) {
      this.#signal.throwIfAborted();
      throw error instanceof KcoreError ? error : unreachableError(server, error);
    } finally {
      clearTimeout(late);
    }
  }
}

interface ListPage<Item> {
  readonly items?: readonly Item[] | null;
  readonly metadata?: { readonly continue?: string };
}

/** Checks an answer by its shape; returns the answer itself, with fields that the shape does not name. */
function checkShape(answer: unknown, shape: z.ZodType | undefined): unknown {
  const problem = shape?.safeParse(answer).error?.issues[0];
  if (problem === undefined) return answer;
  throw new Error(clipText(`it says what no API server says: ${[...problem.path, problem.message].join(": ")}`));
}

async function readBody(reply: IncomingMessage, server: string): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of reply as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > REPLY_LIMIT) throw overflowError(server, `an answer of more than ${REPLY_LIMIT >> 20} MiB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The server's Status of a refusal, or one made of the answer of a proxy before the server. */
function refusalStatus(code: number, text: string): KubeStatus {
  try {
    const found = KubeStatus.safeParse(JSON.parse(text));
    if (found.success) return { ...found.data, code };
  } catch {
    // No JSON: a proxy's page.
  }
  return { code, message: text.slice(0, 200).trim() || `HTTP ${code}` };
}
