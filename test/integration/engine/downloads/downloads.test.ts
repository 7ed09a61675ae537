import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { createServer as createHttp, type Server } from "node:http";
import { createServer as createHttps } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { openDownloads } from "#engine/downloads/downloads.ts";
import { usualLimits, type FetchLimits } from "#engine/downloads/fetch-file.ts";
import { blobOf, type FetchRequest } from "#engine/step/blob.ts";
import { remoteBlob, type Fetch, type RemoteContent } from "#engine/step/remote.ts";
import { secret } from "#engine/step/secret.ts";
import { body, token } from "#support/download-server.ts";
import { freePort } from "#support/ports.ts";
import { serveDownloads, type DownloadServer } from "#support/serve-downloads.ts";
import { problemsOf } from "#support/steps.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const { sha256 } = blobOf(body);

describe("downloads of the bastion", () => {
  let folder: TempDir;
  let server: DownloadServer;
  before(async () => {
    folder = await makeTempDir("downloads");
    server = await serveDownloads(folder.path);
  });
  after(async () => {
    server.stop();
    await folder.remove();
  });
  let cache: string;
  let count = 0;
  beforeEach(() => {
    cache = join(folder.path, `cache-${(count += 1)}`);
    server.asked();
  });

  const open = (limits: Partial<FetchLimits> = {}, env: NodeJS.ProcessEnv = {}): Fetch =>
    openDownloads({ folder: cache, env, limits: { ...usualLimits, ...limits } });
  const content = (path: string, more: Partial<RemoteContent> = {}): RemoteContent => ({
    url: `${server.url}${path}`,
    sha256,
    label: "tool",
    headers: {},
    ...more,
  });
  const request = (signal = new AbortController().signal): FetchRequest & { readonly progress: number[] } => {
    const progress: number[] = [];
    return { signal, progress, onProgress: ({ got }) => progress.push(got) };
  };
  const cached = (): string[] => (existsSync(cache) ? readdirSync(cache) : []);
  /** Code and message of a fetch that must fail, with a hint and an empty cache. */
  async function refusalOf(fetch: Fetch, what: RemoteContent): Promise<string> {
    const problems = await problemsOf(() => fetch(what, request()));
    expect(problems).to.have.length(1);
    expect(problems[0]?.hint).to.be.a("string");
    expect(cached()).to.deep.equal([]);
    return `${problems[0]?.code} ${problems[0]?.message.replaceAll(server.url, "URL")} ${problems[0]?.detail ?? ""}`.trim();
  }

  it("fetches once for concurrent requests, and not again in this process or another", async () => {
    const fetch = open();
    const [one, two] = [request(), request()];
    const ends = await Promise.all([fetch(content("/file"), one), fetch(content("/file"), two)]);
    const file = join(cache, sha256);
    expect(ends).to.deep.equal([1, 2].map(() => ({ file, sha256, size: body.length })));
    expect(readFileSync(file).equals(body)).to.equal(true);
    expect([one.progress, two.progress].map((progress) => progress[0])).to.deep.equal([0, 0]);
    expect([statSync(file).mode & 0o777, statSync(cache).mode & 0o777]).to.deep.equal([0o600, 0o700]);
    await fetch(content("/file"), request());
    const later = request();
    await open()(content("/none"), later);
    expect([server.asked(), later.progress]).to.deep.equal([["GET /file - -"], []]);
  });

  it("offers the content as a blob, and fetches it again when the cached file is damaged", async () => {
    await open()(content("/file"), request());
    writeFileSync(join(cache, sha256), "damaged");
    const blob = remoteBlob(content("/file"), open());
    expect([blob.size, blob.sha256]).to.deep.equal([0, sha256]);
    const here = await blob.fetch?.(request());
    expect([here?.size, here?.label, Buffer.from((await here?.read()) ?? []).equals(body)]).to.deep.equal([
      body.length,
      "tool",
      true,
    ]);
    expect(server.asked()).to.have.length(2);
  });

  it("refuses other bytes, a cut connection, a missing file and a closed port", async () => {
    const other = blobOf("a").sha256;
    expect(await refusalOf(open(), content("/file", { sha256: other }))).to.equal(
      `DOWNLOAD_DIFFERS the content of URL/file has another SHA-256 wanted ${other}\nfound  ${sha256}`,
    );
    expect(await refusalOf(open(), content("/cut"))).to.equal(
      "DOWNLOAD_FAILED the bastion cannot fetch URL/cut: the connection was cut before its end",
    );
    expect(await refusalOf(open(), content("/none"))).to.equal(
      "DOWNLOAD_FAILED the bastion cannot fetch URL/none: the server answers 404 Not Found",
    );
    const url = `http://127.0.0.1:${await freePort()}/`;
    expect(await refusalOf(open(), content("/", { url }))).to.contain("ECONNREFUSED");
  });

  it("limits size, time and redirects", async () => {
    expect(await refusalOf(open({ bytes: 100_000 }), content("/file"))).to.contain("larger than 100000 bytes");
    expect(await refusalOf(open({ bytes: 5_000_000 }), content("/endless"))).to.contain("larger than 5000000 bytes");
    expect(await refusalOf(open({ whole: 300 }), content("/endless"))).to.contain("it took longer than 0.3 s");
    expect(await refusalOf(open({ stall: 200 }), content("/half"))).to.contain("nothing came for 0.2 s");
    const silent = createHttp(() => undefined).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/`;
    expect(await refusalOf(open({ answer: 200 }), content("/", { url }))).to.contain("no answer came in 0.2 s");
    silent.closeAllConnections();
    silent.close();
    server.asked();
    expect(await refusalOf(open(), content("/round"))).to.contain("leads on more than 10 times");
    expect(server.asked()).to.have.length(11);
  });

  it("sends headers to the URL's own server only, and never names a secret URL", async () => {
    const headers = { "X-Token": secret(token) };
    await open()(content("/moved", { headers }), request());
    expect(server.asked()).to.deep.equal(["GET /moved - token", "GET /file - -"]);
    const url = secret(`http://127.0.0.1:${await freePort()}/hidden`);
    cache = `${cache}-secret`;
    expect(await refusalOf(open(), content("/", { url }))).to.equal(
      "DOWNLOAD_FAILED the bastion cannot fetch the URL: ECONNREFUSED",
    );
  });

  it("ends a download when its last request is aborted, and not before", async () => {
    const fetch = open();
    const [one, two] = [new AbortController(), new AbortController()];
    const first = request(one.signal);
    const ends = Promise.allSettled([fetch(content("/half"), first), fetch(content("/half"), request(two.signal))]);
    while (!cached().some((name) => name.endsWith(".tmp"))) await new Promise((resolve) => setTimeout(resolve, 10));
    one.abort(new Error("left"));
    await new Promise((resolve) => setImmediate(resolve));
    expect(cached()).to.have.length(1);
    two.abort(new Error("left too"));
    // A new request does not join a download that is being ended.
    const last = new AbortController();
    const anew = fetch(content("/half"), request(last.signal));
    last.abort(new Error("left last"));
    expect(await anew.catch(String)).to.equal("Error: left last");
    expect((await ends).map((end) => (end.status === "rejected" ? String(end.reason) : "fetched"))).to.deep.equal([
      "Error: left",
      "Error: left too",
    ]);
    while (cached().length > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    await fetch(content("/file"), request());
    expect(cached()).to.deep.equal([sha256]);
  });

  it("removes files unused for thirty days, and partial files of killed processes", async () => {
    await open()(content("/file"), request());
    const old = (name: string, days: number): void => {
      writeFileSync(join(cache, name), "old");
      utimesSync(join(cache, name), Date.now() / 1000 - days * 86_400, Date.now() / 1000 - days * 86_400);
    };
    old("a", 31);
    old("b", 29);
    old("c.tmp", 2);
    writeFileSync(join(cache, sha256), "damaged");
    await open()(content("/file"), request());
    expect(cached().toSorted()).to.deep.equal([sha256, "b"].toSorted());
  });

  describe("over https", () => {
    let https: Server;
    let proxy: Server;
    let url: string;
    const proxied: string[] = [];
    const ca = (): string => join(folder.path, "cert.pem");
    before(async () => {
      const key = join(folder.path, "key.pem");
      const words = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
      const names = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"];
      execFileSync("openssl", ["req", ...words, ...names, "-keyout", key, "-out", ca()], { stdio: "ignore" });
      https = createHttps({ key: readFileSync(key), cert: readFileSync(ca()) }, (_request, response) =>
        response.end(body),
      ).listen(0, "127.0.0.1");
      proxy = createHttp((request, response) => {
        proxied.push(`${request.method} ${request.url}`);
        response.end(body);
      });
      proxy.on("connect", (request, socket) => {
        proxied.push(`${request.method} ${request.url}`);
        const [host = "", port = ""] = (request.url ?? "").split(":");
        const there = connect(Number(port), host, () => {
          socket.write("HTTP/1.1 200 OK\r\n\r\n");
          there.pipe(socket).pipe(there);
        });
        there.on("error", () => socket.destroy());
        socket.on("error", () => there.destroy());
      });
      proxy.listen(0, "127.0.0.1");
      await Promise.all([once(https, "listening"), once(proxy, "listening")]);
      url = `https://127.0.0.1:${(https.address() as AddressInfo).port}/file`;
    });
    after(() => {
      for (const one of [https, proxy]) {
        one.closeAllConnections();
        one.close();
      }
    });
    beforeEach(() => void proxied.splice(0));
    const proxyUrl = (): string => `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;

    it("verifies the certificate, against a given CA file too", async () => {
      expect(await refusalOf(open(), content("/", { url }))).to.contain("self-signed certificate");
      const caFile = join(folder.path, "none.pem");
      expect(await refusalOf(open(), content("/", { url, caFile }))).to.contain(`cannot read caFile ${caFile}`);
      await open()(content("/", { url, caFile: ca() }), request());
      expect(cached()).to.deep.equal([sha256]);
    });

    it("uses the proxies of the environment or of the step", async () => {
      const env = { http_proxy: proxyUrl(), https_proxy: proxyUrl() };
      await open({}, env)(content("/", { url, caFile: ca() }), request());
      expect(proxied).to.deep.equal([`CONNECT ${new URL(url).host}`]);
      cache = `${cache}-plain`;
      await open({}, env)(content("/", { url: "http://nowhere.invalid/file" }), request());
      expect(proxied.at(-1)).to.equal("GET http://nowhere.invalid/file");
      cache = `${cache}-given`;
      await open()(content("/", { url: "http://nowhere.invalid/given", proxy: proxyUrl() }), request());
      expect(proxied.at(-1)).to.equal("GET http://nowhere.invalid/given");
      cache = `${cache}-direct`;
      await open({}, { ...env, no_proxy: "127.0.0.1" })(content("/file"), request());
      expect(proxied).to.have.length(3);
    });
  });
});
