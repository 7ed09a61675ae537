import { readFile } from "node:fs/promises";
import { Agent as HttpAgent, request as requestHttp, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import type { RemoteContent } from "#engine/step/remote.ts";
import { Secret } from "#engine/step/secret.ts";

/** Why a URL gives nothing; in words of ours, which name no address. */
export class NotFetched extends Error {}

export interface UrlOptions {
  /** Where proxies are named (http_proxy, https_proxy, no_proxy). */
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

const mostRedirects = 10;
const leads: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Asks for the content, where the URL leads, and gives the answer's body. The headers go to the URL's own server, never to the target of a redirect.
 * @throws NotFetched; Node's errors of a connection
 */
export async function openUrl(content: RemoteContent, options: UrlOptions): Promise<IncomingMessage> {
  const ask = await asking(content, options);
  let url = new URL(textOf(content.url));
  let headers = Object.fromEntries(Object.entries(content.headers).map(([name, value]) => [name, textOf(value)]));
  for (let hop = 0; hop <= mostRedirects; hop++) {
    const answer = await ask(url, headers);
    const { statusCode = 0, statusMessage = "", headers: said } = answer;
    if (statusCode === 200) return answer;
    answer.destroy();
    if (!leads.has(statusCode) || said.location === undefined)
      throw new NotFetched(`the server answers ${statusCode} ${statusMessage}`.trimEnd());
    const to = URL.parse(said.location, url.href);
    if (to?.protocol !== "http:" && to?.protocol !== "https:")
      throw new NotFetched("the server leads to what is neither http nor https");
    [url, headers] = [to, {}];
  }
  throw new NotFetched(`the server leads on more than ${mostRedirects} times`);
}

type Ask = (url: URL, headers: Readonly<Record<string, string>>) => Promise<IncomingMessage>;

async function asking({ caFile, proxy }: RemoteContent, { env, signal }: UrlOptions): Promise<Ask> {
  const ca = caFile === undefined ? {} : { ca: await readCa(caFile) };
  const proxyEnv = proxy === undefined ? env : { http_proxy: proxy, https_proxy: proxy };
  return (url, headers) => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    // One request each: nothing of a connection is kept.
    const common = { headers, signal };
    const asked =
      url.protocol === "https:"
        ? requestHttps(url, { ...common, agent: new HttpsAgent({ proxyEnv, ...ca }) })
        : requestHttp(url, { ...common, agent: new HttpAgent({ proxyEnv }) });
    asked.on("response", resolve).on("error", reject).end();
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

function textOf(text: string | Secret): string {
  return text instanceof Secret ? text.reveal() : text;
}
