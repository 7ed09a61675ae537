import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { httpReady } from "#engine/modules/http-ready.ts";
import { freePort } from "#support/ports.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

async function untilListening(port: number): Promise<void> {
  for (;;) {
    const up = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true)).once("error", () => resolve(false));
      socket.unref().once("connect", () => socket.destroy());
    });
    if (up) return;
    await sleep(10);
  }
}

describe("http.ready", () => {
  let folder: string;
  let server: ChildProcess;
  let port: number;
  // A server of its own process: the tests wait for their shells without turning the event loop.
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "kcore-http-"));
    writeFileSync(join(folder, "healthz"), "it's ok\n");
    port = await freePort();
    server = spawn("busybox", ["httpd", "-f", "-p", `127.0.0.1:${port}`, "-h", folder], { stdio: "ignore" });
    await untilListening(port);
  });
  after(() => {
    server.kill();
    rmSync(folder, { recursive: true });
  });

  it("wants the status and the text, and tries for a minute", () => {
    const { want, retry } = stepOf(httpReady, { url: "https://n1:9090/", status: [200, 204], contains: "ok" });
    expect([want, retry?.attempts]).to.deep.equal([{ status: "200 or 204", contains: "ok" }, 31]);
  });

  it("refuses what is no plain URL, and half a client certificate", () => {
    for (const args of [
      { url: "file:///etc/passwd" },
      { url: "http://a b/" },
      { url: "http://-x$(id)/" },
      { url: "http://u:p@h/" },
      { url: "http://h/", certFile: "/a" },
    ])
      expect(httpReady.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    it(`asks and judges the answer on ${shell}`, async () => {
      const run = (path: string, args: object = {}) =>
        runStepOn(shell, stepOf(httpReady, { url: `http://127.0.0.1:${port}/${path}`, ...args }), { dryRun: true });
      expect((await run("healthz", { contains: "it's" })).outcome).to.equal("ok");
      expect((await run("healthz", { contains: "no" })).have["contains"]).to.equal("not in: it's ok\n".trim());
      expect((await run("none")).have["status"]).to.equal("404");
      expect((await run("none", { status: 404 })).outcome).to.equal("ok");
    });

  it("says why there is no answer", async () => {
    const run = await runStepOn("dash", stepOf(httpReady, { url: "http://127.0.0.1:1/" }), { dryRun: true });
    expect(run.have["status"]).to.contain("no answer: ");
  });

  // Each client in turn, on a machine that has only that one beside the baseline.
  const baseline = ["cat", "grep", "head", "rm", "sed", "sleep", "tail", "tr"].map((name): [string, string] => [
    name,
    name,
  ]);
  const clients: Record<string, [string, string][]> = {
    curl: [["curl", "curl"]],
    "GNU wget": [["wget", "wget"]],
    "BusyBox wget": [["wget", "busybox"]],
    bash: [["bash", "bash"]],
    "bash with timeout": [
      ["bash", "bash"],
      ["timeout", "timeout"],
    ],
  };
  const runWith = (client: [string, string][], args: object) => {
    const tools = mkdtempSync(join(folder, "tools-"));
    for (const [name, program] of [...baseline, ...client]) symlinkSync(`/usr/bin/${program}`, join(tools, name));
    return runStepOn("/usr/bin/dash", stepOf(httpReady, args), { env: { PATH: tools }, dryRun: true });
  };
  for (const [name, client] of Object.entries(clients))
    it(`asks with ${name}`, async () => {
      const good = await runWith(client, { url: `http://127.0.0.1:${port}/healthz`, contains: "ok" });
      expect(good.outcome, JSON.stringify(good)).to.equal("ok");
      const none = await runWith(client, { url: `http://127.0.0.1:${port}/none` });
      expect(none.have["status"], JSON.stringify(none)).to.equal("404");
    });

  it("lets no program ask over TLS that checks no certificate", async () => {
    const busybox: [string, string][] = [["wget", "busybox"]];
    expect((await runWith(busybox, { url: "https://127.0.0.1:1/" })).problem?.code).to.equal("TOOL_MISSING");
    const unchecked = await runWith(busybox, { url: "https://127.0.0.1:1/", insecure: true });
    expect(unchecked.have["status"]).to.contain("no answer");
  });

  it("names the missing program where nothing on the node can ask", async () => {
    for (const [client, args] of [
      [[], {}],
      [[["wget", "busybox"]], { url: "https://h/", caFile: "/ca" }],
      [[["bash", "bash"]], { url: "https://h/" }],
    ] as const) {
      const run = await runWith([...client] as [string, string][], { url: "http://127.0.0.1:1/", ...args });
      expect(run.problem?.code).to.equal("TOOL_MISSING");
    }
  });
});
