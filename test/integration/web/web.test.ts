import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { ChildProcess } from "node:child_process";
import { expect } from "chai";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { formatEvent } from "#engine/events/recording.ts";
import { createRun, runFolder } from "#engine/run/run-folder.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { ask, startBrowser, until, watchPage } from "#support/browser.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { runRequest } from "#support/runs.ts";
import { wideRun } from "#support/wide-run.ts";

const contrasts = readFileSync(new URL("../../support/contrasts.js", import.meta.url), "utf8");

/** A state whose steps wait for a file, and fail by its content. */
const states = (path: string) => `steps:
  - id: wait
    command.run: { cmd: "echo begun; while ! test -e ${path}/{{ node.name }}; do sleep 0.02; done; cat ${path}/{{ node.name }}" }
  - id: check
    command.run: { cmd: "grep -q good ${path}/{{ node.name }} || { echo it is bad >&2; exit 3; }" }
`;

describe("kcore web", () => {
  let project: TestProject;
  let browser: Browser;
  let web: { readonly child: ChildProcess; readonly ended: Promise<CommandEnd> };
  let url: URL;

  const startWeb = async (...words: readonly string[]): Promise<void> => {
    web = project.start(["web", "-o", "json", ...words]);
    const [text] = (await once(web.child.stdout as NodeJS.ReadableStream, "data")) as [string];
    url = new URL((JSON.parse(text) as { url: string }).url);
  };
  const get = (path: string, headers: Readonly<Record<string, string>> = {}, method = "GET") =>
    fetch(`${url.origin}${path}`, {
      method,
      redirect: "manual",
      headers: { authorization: `Bearer ${url.searchParams.get("token")}`, ...headers },
    });
  const open = async (path = "/", options: BrowserContextOptions = {}) => {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
    const seen = watchPage(page);
    await page.goto(url.href);
    await page.waitForURL(/\/[\w-]{22}\/$/);
    if (path !== "/") await page.goto(new URL(path.slice(1), page.url()).href);
    return { page, ...seen };
  };
  const record = async (events: readonly RunEvent[]): Promise<string> => {
    const { folder } = await createRun({
      project: project.project,
      request: runRequest({ command: "kcore orchestrate deploy_node" }),
      who: "op@bastion",
      created: Date.now(),
      attended: false,
    });
    writeFileSync(folder.events, events.map(formatEvent).join(""));
    return folder.id;
  };
  const go = (node: string, how: "good" | "bad") => writeFileSync(join(project.path, "go", node), how);

  before(async () => {
    project = new TestProject();
    const node = (name: string) =>
      `  ${name}: { address: 127.0.0.1, transport: local, stateDir: ${project.path}/${name}, roles: [web] }\n`;
    for (const name of ["a", "b", "c", "go"]) mkdirSync(join(project.path, name), { mode: 0o700 });
    project.write({
      "project/roster/web.yaml": `nodes:\n${["a", "b", "c"].map(node).join("")}`,
      "project/states/wait.yaml": states(join(project.path, "go")),
    });
    await startWeb("--port", "0");
    browser = await startBrowser();
  });
  after(async () => {
    for (const node of ["a", "b", "c"]) go(node, "good");
    await browser?.close();
    web?.child.kill("SIGINT");
    await web?.ended;
    await project?.remove();
  });

  it("shows a running run live: open rows, failures first, and the end", async () => {
    const { page, complaints } = await open();
    await page.getByText("Nothing has been run in this project yet.").waitFor();
    const run = project.start(["state", "apply", "wait", "--on", "role:web"]);
    // The list updates without a reload.
    await page.getByRole("link", { name: "state apply wait" }).click();
    await page.locator(".verdict", { hasText: "running" }).waitFor();
    const row = page.locator("details[data-name=b]");
    await row.locator("summary").first().click();
    await row.locator("details.output summary").click();
    await row.getByText("begun").waitFor();
    expect(await ask(page, "[...document.querySelectorAll('.lane')].map(({ dataset }) => dataset.name)")).to.deep.equal(
      ["a", "b", "c"],
    );
    // Without events, the time still advances.
    const took =
      "[...document.querySelectorAll('dt')].find((one) => one.textContent === 'Took').nextElementSibling.textContent";
    const before = await ask(page, took);
    await until(page, `${took} !== ${JSON.stringify(before)}`);
    go("c", "bad");
    await until(page, "document.querySelector('.lane').dataset.name === 'c'");
    await page.locator(".failures").getByText("it is bad").first().waitFor();
    expect(await page.locator("#count-failed").innerText()).to.equal("1");
    // An open row stays open after other rows have changed and moved.
    expect(await row.getByText("begun").isVisible()).to.equal(true);
    go("a", "good");
    go("b", "good");
    await page.locator(".verdict", { hasText: "failed" }).waitFor();
    await row.getByText("check").waitFor();
    expect(await page.locator(".lead").innerText()).to.match(/^2 of 3 nodes done, 1 failed, in /);
    expect((await run.ended).code).to.equal(1);
    await page.getByRole("link", { name: "Runs" }).click();
    await page.getByText("✖ failed").waitFor();
    expect(complaints).to.deep.equal([]);
    await page.close();
  });

  it("shows a run that is resumed while its page is open", async () => {
    const { page } = await open();
    await page.locator("tbody a").first().click();
    await page.locator(".verdict", { hasText: "failed" }).waitFor();
    go("c", "good");
    const resumed = await project.kcore("runs", "resume", "last");
    expect(resumed.code, resumed.stderr).to.equal(0);
    await page.locator(".verdict", { hasText: "done" }).waitFor();
    await page.close();
  });

  it("shows a lost connection, and a new server needs a new address", async () => {
    const { page } = await open();
    const link = page.locator("#link");
    await link.getByText("live").waitFor();
    const { port } = url;
    web.child.kill("SIGINT");
    expect((await web.ended).code).to.equal(0);
    await link.getByText("not connected").waitFor();
    await startWeb("--port", port);
    // The cookie was the former server's; only the new address works, as the new server says.
    expect((await fetch(new URL("/", url))).status).to.equal(401);
    await page.close();
  });

  it("admits the token's holder only, changes nothing, and serves nothing outside its pages", async () => {
    const id = await record(recordedRun("failed"));
    expect((await get("/")).status).to.equal(200);
    expect((await get("/", { authorization: "Bearer x" })).status).to.equal(403);
    expect((await fetch(new URL("/", url))).status).to.equal(401);
    for (const method of ["POST", "PUT", "DELETE", "PATCH"]) expect((await get("/", {}, method)).status).to.equal(405);
    for (const [path, status] of [
      [`/runs/${id}`, 200],
      [`/runs/${id}/rows/node-0`, 200],
      [`/runs/${id}/rows/node-0/bars`, 200],
      [`/runs/${id}/rows/node-99`, 404],
      [`/runs/${id}/report.html`, 200],
      [`/runs/${id}/events.ndjson`, 404],
      ["/runs/20261121-061500-ffff", 404],
      ["/runs/..%2f..%2froster", 404],
      ["/runs/%2e%2e/roster/nodes.yaml", 404],
      ["/roster/nodes.yaml", 404],
      ["/%", 400],
      // This project has no cluster yet.
      ["/fleet", 503],
      ["//evil.example/", 404],
    ] as const) {
      const answer = await get(path);
      expect(answer.status, path).to.equal(status);
      const policy = answer.headers.get("content-security-policy") ?? "";
      expect(policy, path).to.include("frame-ancestors 'none'");
      if (!path.endsWith("report.html"))
        expect(policy, path).to.include("default-src 'none'").and.not.include("unsafe");
      expect(answer.headers.get("cache-control")).to.equal("no-store");
    }
  });

  it("sends its cookie to no other port of this machine, and its path to no refused client", async () => {
    const got: (string | undefined)[] = [];
    const other = createServer(({ headers }, response) => {
      got.push(headers.cookie);
      response.end("<p>other</p>");
    }).listen(0, "127.0.0.1");
    await once(other, "listening");
    const { page } = await open();
    try {
      const root = new URL(page.url()).pathname;
      for (const path of ["/", "/runs", "/fleet"])
        await page.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}${path}`);
      expect(got.length).to.be.greaterThan(2);
      expect(got.filter((cookie) => cookie?.includes("kcore-web"))).to.deep.equal([]);
      for (const path of ["/", "/runs", `${root}runs`]) {
        const refused = await fetch(new URL(path, url));
        expect(refused.status).to.equal(401);
        expect(await refused.text()).not.to.include(root);
      }
    } finally {
      await page.close();
      other.close();
    }
  });

  it("filters the list by state and node, and pages to older runs", async () => {
    await record(recordedRun("done"));
    const list = async (words: string) => (await get(`/?${words}`)).text();
    const rows = (text: string) => text.split("<tr>").length - 2;
    expect(rows(await list(""))).to.equal(3);
    expect(rows(await list("state=failed"))).to.equal(1);
    expect(rows(await list("node=b"))).to.equal(1);
    expect(await list("node=%3Cb%3E")).to.include("There are no runs on a node “&lt;b&gt;”.");
    const newest = /href="\/[\w-]{22}\/runs\/([\w-]+)"/.exec(await list(""))?.[1];
    expect(rows(await list(`before=${newest}`))).to.equal(2);
  });

  it("rescales the bars of all rows when the time axis grows", async () => {
    const events = recordedRun("failed");
    const [begin] = events;
    const known = events.filter(({ type }) => type !== "run.finished");
    const id = await record(known);
    const { page, complaints } = await open(`/runs/${id}`);
    const widthOf = "document.querySelector('.lane .bars path').getBoundingClientRect().width";
    await until(page, "document.getElementById('axis')?.dataset.long === '10000'");
    const before = await ask<number>(page, widthOf);
    const { seq = 0 } = known.at(-1) ?? {};
    const later = { seq: seq + 1, at: (begin?.at ?? 0) + 31_000, type: "warning", text: "it takes long" } as const;
    appendFileSync(runFolder(project.project, id).events, formatEvent(later));
    await until(page, `${widthOf} < ${before / 4}`);
    expect(await ask<number>(page, widthOf)).to.be.closeTo(before / 6, before / 60);
    // A page that opens only now shows the same.
    const other = await open(`/runs/${id}`);
    expect(await ask<number>(other.page, widthOf)).to.be.closeTo(before / 6, before / 60);
    expect(complaints).to.deep.equal([]);
    await other.page.close();
    await page.close();
  });

  for (const colorScheme of ["light", "dark"] as const)
    it(`is legible and fits a phone, in ${colorScheme} colours`, async () => {
      const id = await record(wideRun({ nodes: 6, steps: 12, failEvery: 5, apart: 700 }));
      for (const path of ["/", `/runs/${id}`]) {
        const { page } = await open(path, { colorScheme, viewport: { width: 375, height: 740 }, isMobile: true });
        expect(await ask(page, "document.documentElement.scrollWidth"), path).to.equal(375);
        expect(await ask(page, contrasts), path).to.deep.equal([]);
        const background = await ask(page, "getComputedStyle(document.body).backgroundColor");
        expect(background).to.equal({ light: "rgb(246, 247, 249)", dark: "rgb(15, 20, 26)" }[colorScheme]);
        await page.close();
      }
    });

  it("reports wrong options of where to listen", async () => {
    const { port } = url;
    const taken = await project.kcore("web", "--port", port);
    expect(taken.code).to.equal(2);
    expect(taken.stderr).to.include("[WEB_PORT_TAKEN]");
    for (const [words, text] of [
      [["--listen", "0.0.0.0"], "an address and a port are wanted"],
      [["--listen", "0.0.0.0:8443", "--port", "1"], "--listen has its port in itself"],
      [["--listen", "[::1]:8443", "--port", "1"], "--listen [::1]:1"],
      [["--name", "x"], "need --listen"],
      [["--port", "70000"], "a port is wanted"],
      [["--listen", "127.0.0.1:0"], "PKI_CONTEXT_UNKNOWN"],
    ] as const) {
      const { code, stderr } = await project.kcore("web", ...words);
      expect(code, words.join(" ")).to.equal(2);
      expect(stderr).to.include(text);
    }
  });
});
