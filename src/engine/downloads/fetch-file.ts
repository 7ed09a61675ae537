import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { Agent as HttpAgent, request as requestHttp, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { addAbortSignal } from "node:stream";
import { replaceFile } from "#base/file.ts";
import { KcoreError } from "#errors/problem.ts";
import type { FetchRequest } from "#engine/step/blob.ts";
import type { RemoteContent } from "#engine/step/remote.ts";
import { Secret } from "#engine/step/secret.ts";

/** The reason for a failed fetch. The message never contains the URL, which may be secret. */
class NotFetched extends Error {}

/** Limits of one fetch; exceeding one fails the fetch. */
export interface FetchLimits {
  /** Bytes of a content: a content is in memory while it is sent to nodes. */
  readonly bytes: number;
  /** Milliseconds for the whole fetch. */
  readonly whole: number;
  /** Milliseconds until the answer begins. */
  readonly answer: number;
  /** Milliseconds between two chunks of the body. */
  readonly stall: number;
}

export const usualLimits: FetchLimits = { bytes: 2 ** 31 - 1, whole: 7_200_000, answer: 60_000, stall: 300_000 };

export interface FetchOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly limits: FetchLimits;
  /** Aborted when no step waits for the content any more. */
  readonly signal: AbortSignal;
  readonly onProgress: FetchRequest["onProgress"];
}

/**
 * Fetches a content to this file, which appears only complete and with the right hash.
 * @throws KcoreError DOWNLOAD_FAILED, DOWNLOAD_DIFFERS; the reason of `signal`
 */
export async function fetchFile(content: RemoteContent, file: string, options: FetchOptions): Promise<void> {
  const { limits, signal } = options;
  const timer = new FetchTimer(limits);
  try {
    await replaceFile(
      file,
      verifiedBytes(content, { ...options, timer, signal: AbortSignal.any([signal, timer.signal]) }),
    );
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof KcoreError) throw error;
    throw failed(content, timer.signal.aborted ? timer.signal.reason : error);
  } finally {
    timer.end();
  }
}

/** The bytes of the URL; throws after the last byte if the hash is wrong. */
async function* verifiedBytes(
  content: RemoteContent,
  { limits, timer, onProgress, ...options }: FetchOptions & { readonly timer: FetchTimer },
): AsyncGenerator<Buffer> {
  const body = await openUrl(content, options);
  const length = Number(body.headers["content-length"] ?? Number.NaN);
  const total = Number.isSafeInteger(length) ? { total: length } : {};
  const hash = createHash("sha256");
  let got = 0;
  const tooLarge = (): NotFetched => new NotFetched(`it is larger than ${limits.bytes} bytes, more than can be sent`);
  if (length > limits.bytes) {
    body.destroy();
    throw tooLarge();
  }
  timer.renew();
  for await (const chunk of addAbortSignal(options.signal, body) as AsyncIterable<Buffer>) {
    timer.renew();
    hash.update(chunk);
    if ((got += chunk.length) > limits.bytes) throw tooLarge();
    onProgress({ got, ...total });
    yield chunk;
  }
  const found = hash.digest("hex");
  if (found !== content.sha256) throw differs(content, found);
}

/** Aborts a fetch that takes too long: as a whole, until its answer, or between two chunks. */
class FetchTimer {
  readonly #limits: FetchLimits;
  readonly #end = new AbortController();
  readonly #whole: NodeJS.Timeout;
  #next: NodeJS.Timeout;

  constructor(limits: FetchLimits) {
    this.#limits = limits;
    this.#whole = this.#timer(limits.whole, `it took longer than ${seconds(limits.whole)}`);
    this.#next = this.#timer(limits.answer, `no answer came in ${seconds(limits.answer)}`);
  }

  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** Called for the answer and each chunk: restarts the limit for the next chunk. */
  renew(): void {
    clearTimeout(this.#next);
    this.#next = this.#timer(this.#limits.stall, `nothing came for ${seconds(this.#limits.stall)}`);
  }

  end(): void {
    clearTimeout(this.#next);
    clearTimeout(this.#whole);
  }

  #timer(milliseconds: number, why: string): NodeJS.Timeout {
    return setTimeout(() => this.#end.abort(new NotFetched(why)), milliseconds);
  }
}

function seconds(milliseconds: number): string {
  return `${milliseconds / 1000} s`;
}

function failed(content: RemoteContent, error: unknown): KcoreError {
  return new KcoreError(
    {
      code: "DOWNLOAD_FAILED",
      message: `the bastion cannot fetch ${urlInMessages(content)}: ${reasonOf(content, error)}`,
      hint: "look whether this machine reaches it, and its proxies (http_proxy, https_proxy, no_proxy)",
    },
    { cause: error },
  );
}

/** Node's messages may contain the URL, which may be secret; its codes do not. */
function reasonOf({ url }: RemoteContent, error: unknown): string {
  if (error instanceof NotFetched) return error.message;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ERR_STREAM_PREMATURE_CLOSE" || message === "aborted") return "the connection was cut before its end";
  return url instanceof Secret || message === "" ? (code ?? "unknown reason") : message;
}

function differs(content: RemoteContent, found: string): KcoreError {
  return new KcoreError({
    code: "DOWNLOAD_DIFFERS",
    message: `the content of ${urlInMessages(content)} has another SHA-256`,
    detail: `wanted ${content.sha256}\nfound  ${found}`,
    hint: "compare both with what its publisher gives",
  });
}

function urlInMessages({ url }: RemoteContent): string {
  return url instanceof Secret ? "the URL" : url;
}

interface UrlOptions {
  /** The environment, whose http_proxy, https_proxy and no_proxy name proxies. */
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

const maxRedirects = 10;
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Requests the content, follows redirects, and returns the answer's body. The headers go to the URL's own server, never to the target of a redirect.
 * @throws NotFetched; Node's errors of a connection
 */
async function openUrl(content: RemoteContent, options: UrlOptions): Promise<IncomingMessage> {
  const ask = await requester(content, options);
  let url = new URL(revealed(content.url));
  let headers = Object.fromEntries(Object.entries(content.headers).map(([name, value]) => [name, revealed(value)]));
  for (let hop = 0; hop <= maxRedirects; hop++) {
    const answer = await ask(url, headers);
    const { statusCode = 0, statusMessage = "", headers: answerHeaders } = answer;
    if (statusCode === 200) return answer;
    answer.destroy();
    if (!redirectStatuses.has(statusCode) || answerHeaders.location === undefined)
      throw new NotFetched(`the server answers ${statusCode} ${statusMessage}`.trimEnd());
    const to = URL.parse(answerHeaders.location, url.href);
    if (to?.protocol !== "http:" && to?.protocol !== "https:")
      throw new NotFetched("the server leads to what is neither http nor https");
    [url, headers] = [to, {}];
  }
  throw new NotFetched(`the server leads on more than ${maxRedirects} times`);
}

type Ask = (url: URL, headers: Readonly<Record<string, string>>) => Promise<IncomingMessage>;

async function requester({ caFile, proxy }: RemoteContent, { env, signal }: UrlOptions): Promise<Ask> {
  const ca = caFile === undefined ? {} : { ca: await readCa(caFile) };
  const proxyEnv = proxy === undefined ? env : { http_proxy: proxy, https_proxy: proxy };
  return (url, headers) => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    // An agent for each request: no connection is kept.
    const common = { headers, signal };
    const request =
      url.protocol === "https:"
        ? requestHttps(url, { ...common, agent: new HttpsAgent({ proxyEnv, ...ca }) })
        : requestHttp(url, { ...common, agent: new HttpAgent({ proxyEnv }) });
    request.on("response", resolve).on("error", reject).end();
    return promise;
  };
}

async function readCa(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw new NotFetched(`cannot read caFile ${file}: ${(cause as Error).message}`, { cause });
  }
}

function revealed(text: string | Secret): string {
  return text instanceof Secret ? text.reveal() : text;
}
