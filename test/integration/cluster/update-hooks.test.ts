import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { runHook, type HookEnd } from "#actions/run-hook.ts";
import { isAlive, markProcess } from "#engine/run/process-mark.ts";
import { eventually } from "#support/cluster.ts";

describe("a hook on the bastion", () => {
  let folder: string;
  const log = (): string => join(folder, "hook.log");
  const run = (command: string, more: object = {}): Promise<HookEnd> =>
    runHook({
      words: ["/bin/sh", "-c", command],
      cwd: folder,
      env: { KCORE_NODE: "n1" },
      log: log(),
      limitSeconds: 60,
      spareSeconds: 0,
      isRepeated: false,
      signal: new AbortController().signal,
      ...more,
    });

  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "kcore-hook-"))));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it("knows its node, and what it prints is kept", async () => {
    expect(await run("echo drained $KCORE_NODE; echo and >&2")).to.deep.equal({ ok: true });
    expect(readFileSync(log(), "utf8")).to.equal("drained n1\nand\n");
  });

  it("that fails says how, with the end of what it printed and nothing that drives a terminal", async () => {
    expect(await run(String.raw`printf 'no \033[2Jpods'; exit 3`)).to.deep.equal({
      ok: false,
      message: "it exits with 3: no pods",
    });
    expect(await run("kill -9 $$")).to.have.property("message", "it ended by SIGKILL: no pods");
  });

  it("is ended a little before its time is over, and what it printed last is told", async () => {
    const stuck = await run("echo evicting web; sleep 60", { limitSeconds: 60, spareSeconds: 57 });
    expect(stuck).to.deep.equal({ ok: false, message: "it ran out of its 60 s: evicting web" });
    const obliging = await run("trap 'exit 0' TERM; sleep 60 & wait", { limitSeconds: 60, spareSeconds: 57 });
    expect(obliging).to.have.property("ok", false);
  });

  it("that does not end when it is told to is answered for within its time all the same", async () => {
    const { message, exit } = await run("trap '' TERM; echo $$; while :; do sleep 1; done", {
      limitSeconds: 5,
      spareSeconds: 2,
    });
    expect(message).to.match(/^it ran out of its 5 s: \d+$/);
    const pid = Number(readFileSync(log(), "utf8").trim());
    const mark = markProcess(pid);
    expect(isAlive(mark)).to.equal(true);
    process.kill(-pid, "SIGKILL");
    await exit;
    expect(isAlive(mark)).to.equal(false);
  });

  it("that does not end when whoever attends leaves is waited for, past the time when it would be answered for", async () => {
    const stop = new AbortController();
    const command = "trap '' TERM; echo $$; sleep 3.5";
    const ended = run(command, { limitSeconds: 3, spareSeconds: 1, signal: stop.signal }).catch(String);
    const pid = await eventually(() => existsSync(log()) && (Number(readFileSync(log(), "utf8")) || undefined));
    const mark = markProcess(pid);
    stop.abort(new Error("left"));
    expect(await ended).to.equal("Error: left");
    expect(isAlive(mark)).to.equal(false);
  });

  it("that is a gate is tried until it holds", async () => {
    const command = "test -e tried || { touch tried; exit 1; }";
    expect(await run(command, { isRepeated: true })).to.deep.equal({ ok: true });
  });
});
