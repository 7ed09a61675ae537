import { execFile, execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { Browser } from "playwright-core";
import { ClusterSite } from "#support/cluster-site.ts";
import type { Credentials } from "#api/client.ts";
import { inventoryEntry } from "#pki/issued.ts";
import { ask, startBrowser, watchPage } from "#support/browser.ts";
import { createTestCluster, issueTo, passphrase, type TestCluster } from "#support/cluster.ts";
import { nodeCredentials, type TestController } from "#support/controllers.ts";
import type { TestProject, CommandEnd } from "#support/kcore.ts";

interface Web {
  readonly url: string;
  readonly end: () => Promise<CommandEnd>;
}

describe("kcore web with a cluster", () => {
  let site: ClusterSite;
  let cluster: TestCluster;
  let stranger: TestCluster;
  let project: TestProject;
  let web: Web | undefined;
  let browser: Browser | undefined;
  const at = (index: number): TestController => site.at(index);

  const start = async (...words: readonly string[]): Promise<Web> => {
    const started = project.start(["web", "-o", "json", ...words], {
      KCORE_HOME: cluster.home,
      KCORE_CA_PASSPHRASE: passphrase,
    });
    const [text] = (await once(started.child.stdout as NodeJS.ReadableStream, "data")) as [string];
    web = {
      url: (JSON.parse(text) as { url: string }).url,
      end: () => {
        started.child.kill("SIGTERM");
        return started.ended;
      },
    };
    return web;
  };
  const register = async (name: string): Promise<string> => (await site.register(name)).id;
  /** A request by curl; gives the status and the body, or curl's error. */
  const curl = (url: string, shown?: Pick<Credentials, "cert" | "key">): Promise<string> => {
    const files = join(project.path, `shown-${randomUUID()}`);
    mkdirSync(files, { mode: 0o700 });
    writeFileSync(join(files, "ca.crt"), cluster.operator.ca);
    for (const name of ["cert", "key"] as const) if (shown) writeFileSync(join(files, name), shown[name]);
    const words = shown ? ["--cert", join(files, "cert"), "--key", join(files, "key")] : [];
    return new Promise((resolve) =>
      execFile(
        "curl",
        ["-sS", "--max-time", "10", "--cacert", join(files, "ca.crt"), ...words, "-w", "\n%{http_code}", url],
        (error, stdout, stderr) => resolve(error ? stderr : stdout),
      ),
    );
  };

  before(async () => {
    stranger = await createTestCluster("other");
    site = await ClusterSite.open(1);
    ({ cluster, project } = site);
    await register("n1");
  });
  afterEach(async () => {
    await web?.end();
    web = undefined;
  });
  after(async () => {
    await browser?.close();
    await site?.stop();
    await stranger?.remove();
  });

  it("shows the fleet live as kcore top does, with a page for each item", async () => {
    const { url } = await start("--port", "0");
    browser = await startBrowser();
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    const { complaints } = watchPage(page);
    await page.goto(url);
    await page.getByRole("link", { name: "Fleet" }).click();
    await page.locator("#fleet-nodes").getByRole("link", { name: "n1" }).waitFor();
    expect(await page.locator("#fleet-head").innerText()).to.include(`as reported by ${at(0).endpoint}`);
    const id = await register("n3");
    await page.locator("#fleet-nodes").getByRole("link", { name: "n3" }).click();
    expect(await page.locator("h1").innerText()).to.equal("n3");
    expect(await page.locator(".lines").innerText())
      .to.include(id)
      .and.match(/status +Ready/);
    await page.getByRole("link", { name: "Runs on n3" }).click();
    await page.getByText("There are no runs on a node “n3”.").waitFor();
    expect(complaints).to.deep.equal([]);
    expect(await ask(page, "document.cookie")).to.equal("");
    await page.close();
  });

  it("listens for other machines by TLS, and admits operators of this cluster only", async () => {
    const { url } = await start("--listen", "127.0.0.1:0", "--name", "localhost", "--name", "127.0.0.1");
    expect(url).to.match(/^https:\/\/localhost:\d+\/$/);
    expect(await curl(url, cluster.operator)).to.match(/<h1>Runs<\/h1>[^]*\n200$/);
    expect(await curl(`${url.replace("localhost", "127.0.0.1")}fleet`, cluster.operator)).to.match(/\n200$/);
    expect(await curl(url)).to.match(/asks for an operator&#39;s certificate[^]*\n401$/);
    expect(await curl(url, nodeCredentials(cluster, randomUUID()))).to.match(/is no operator of lab[^]*\n403$/);
    expect(await curl(url, issueTo(cluster.authority, "controller", randomUUID()))).to.match(
      /is no operator[^]*\n403$/,
    );
    expect(await curl(url, stranger.operator)).to.match(/not of this cluster[^]*\n403$/);
    expect(await curl(url.replace("https:", "http:"))).to.match(/Empty reply|reset|Received HTTP\/0.9/i);
  });

  it("accepts the operator's certificate from the PKCS #12 file that the documentation makes", async () => {
    const { url } = await start("--listen", "127.0.0.1:0", "--name", "localhost");
    const page = readFileSync(new URL("../../../docs/reading-a-run.md", import.meta.url), "utf8");
    const command = (/^openssl pkcs12 .*$/m.exec(page)?.[0] ?? "").replaceAll("~/.kcore/prod", `${cluster.home}/lab`);
    const file = join(project.path, "operator.p12");
    execFileSync("sh", ["-c", `${command.replace("operator.p12", file)} -passout pass:x`]);
    const words = ["-sS", "--cacert", join(cluster.home, "lab/ca.crt"), "--cert-type", "P12", "--cert", `${file}:x`];
    expect(execFileSync("curl", [...words, url], { encoding: "utf8" })).to.include("<h1>Runs</h1>");
  });

  it("serves a certificate for servers only, with the listener's names", async () => {
    const { url } = await start("--listen", "127.0.0.1:0", "--name", "localhost");
    const text = await new Promise<string>((resolve) =>
      execFile(
        "sh",
        [
          "-c",
          'openssl s_client -connect "$1" </dev/null 2>/dev/null | openssl x509 -noout -subject -ext subjectAltName,extendedKeyUsage',
          "sh",
          new URL(url).host,
        ],
        (_, stdout) => resolve(stdout),
      ),
    );
    expect(text)
      .to.match(/CN = kcore-web/)
      .and.match(/DNS:localhost/)
      .and.match(/TLS Web Server Authentication/);
    expect(text).not.to.match(/Client Authentication|kcore:\/\//);
  });

  it("serves the certificate of --tls-cert, and answers 503 once the controllers refuse its own operator", async () => {
    const { cert, key } = issueTo(cluster.authority, "controller", randomUUID(), { host: "localhost" });
    project.write({ "own.crt": cert, "own.key": key });
    const own = ["crt", "key"].map((kind) => join(project.path, `own.${kind}`)) as [string, string];
    const words = ["--listen", "127.0.0.1:0", "--name", "localhost", "--tls-cert", own[0], "--tls-key", own[1]];
    const operator = inventoryEntry(cluster.operator.cert);
    const { url } = await start(...words);
    expect(await curl(url, cluster.operator)).to.match(/\n200$/);
    await web?.end();
    await at(0).operator.call("revoke", { spki: operator?.spki ?? "" });
    const again = await start(...words);
    expect(await curl(again.url, cluster.operator)).to.match(/the controllers refuse this machine[^]*\n503$/);
  });
});
