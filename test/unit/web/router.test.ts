import { mkdirSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { openOnLoopback, type OpenWeb } from "#cli/web/open-web.ts";
import { webSources } from "#cli/web/web-sources.ts";
import { formatEvent } from "#engine/events/recording.ts";
import { createRun } from "#engine/run/run-folder.ts";
import { smallFleet } from "#support/fleet.ts";
import fc from "#support/properties.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { runRequest } from "#support/runs.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

describe("the router of kcore web", () => {
  let folder: TempDir;
  let web: OpenWeb;
  let run: string;
  let token: string;
  before(async () => {
    folder = await makeTempDir("router");
    const request = runRequest({ command: "kcore orchestrate deploy_node" });
    const made = await createRun({ project: folder.path, request, who: "op@b", created: Date.now(), attended: false });
    run = made.folder.id;
    writeFileSync(made.folder.events, recordedRun("failed").map(formatEvent).join(""));
    mkdirSync(join(folder.path, "roster"));
    const openFleet = () =>
      Promise.resolve({
        state: () => ({ snapshot: smallFleet(), link: { state: "live", endpoint: "192.0.2.1:9090" } as const }),
        onNews: () => undefined,
        close: () => undefined,
      });
    web = await openOnLoopback({
      host: "127.0.0.1",
      port: 0,
      isGiven: true,
      frame: { project: "p", version: "1" },
      sources: { ...webSources(folder.path, () => Promise.reject(new Error("no cluster"))), openFleet },
    });
    token = new URL(web.url).searchParams.get("token") as string;
  });
  after(async () => {
    web.close();
    await web.server.close();
    await folder.remove();
  });

  /** The status of the answer to a raw, possibly malformed request; 0 if the connection is closed. */
  const ask = async (line: string, headers: readonly string[] = []): Promise<number> => {
    const { port } = web.server;
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    const all = [line, `Host: 127.0.0.1:${port}`, `Authorization: Bearer ${token}`, ...headers, "Connection: close"];
    socket.write(`${all.join("\r\n")}\r\n\r\n`, "latin1");
    const [first] = (await Promise.race([once(socket, "data"), once(socket, "close").then(() => [""])])) as [unknown];
    socket.destroy();
    return Number(/^HTTP\/1\.1 (\d+)/.exec(String(first))?.[1] ?? 0);
  };

  it("answers any malformed request below 500", async () => {
    const part = fc.constantFrom(
      "/",
      "//",
      "/runs",
      `/runs/${run}`,
      "/rows",
      "/node-0",
      "/bars",
      "/find",
      "?words=a",
      "/report.html",
      "/news",
      "/fleet",
      "/nodes",
      "/controllers",
      "/constructor",
      "/__proto__",
      "/toString",
      "/n1",
      "?state=",
      "?node=%00",
      "&before=",
      "%00",
      "%",
      "%zz",
      "%2e%2e",
      "%2f",
      "/..",
      "/.",
      "\\",
      ":",
      "[",
      "@",
      "#",
      "*",
      "?",
      "http://x",
      "\u00e9",
      "\u0000",
      ";",
      "last",
      "?token=",
      `?from=`,
      "9".repeat(40),
      "a".repeat(3000),
    );
    const header = fc.constantFrom(
      "Last-Event-ID: x",
      "Last-Event-ID: 1-99999999999999999999",
      "Cookie: =; ;=",
      "Range: bytes=9-1",
      "Upgrade: x",
      "Expect: 100-continue",
      "Transfer-Encoding: chunked",
      "Content-Length: 0",
      "X: \u0001",
    );
    const method = fc.constantFrom("GET", "HEAD", "GET", "POST", "OPTIONS", "CONNECT", "PRI", "");
    await fc.assert(
      fc.asyncProperty(
        method,
        fc.array(part, { maxLength: 6 }),
        fc.array(header, { maxLength: 2 }),
        async (verb, parts, more) => {
          const status = await ask(`${verb} ${parts.join("")} HTTP/1.1`, more);
          expect(status === 0 || (status >= 100 && status < 500), `${status}`).to.equal(true);
        },
      ),
      { numRuns: 400 },
    );
    expect([await ask(`GET /runs/${run} HTTP/1.1`), await ask("GET /fleet HTTP/1.1")]).to.deep.equal([200, 200]);
  });
});
