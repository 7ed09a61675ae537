import { existsSync, readFileSync } from "node:fs";
import { expect } from "chai";
import { runHook, type HookEnd } from "#actions/run-hook.ts";
import { isAlive, markProcess } from "#engine/run/process-mark.ts";
import { eventually } from "#support/cluster.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("a hook on the bastion", () => {
  const at = folderOfEachTest("hook");
  const log = (): string => at("hook.log");
  const run = (command: string, more: object = {}): Promise<HookEnd> =>
    runHook({
      words: ["/bin/sh", "-c", command],
      cwd: at(),
      env: { KCORE_NODE: "n1" },
      log: log(),
      limitSeconds: 60,
      spareSeconds: 0,
      isRepeated: false,
      signal: new AbortController().signal,
      ...more,
    });

  it("knows its node, and its output is kept", async () => {
    expect(await run("echo drained $KCORE_NODE; echo and >&2")).to.deep.equal({ ok: true });
    expect(readFileSync(log(), "utf8")).to.equal("drained n1\nand\n");
  });

  it("reports its exit code or signal and its last output, without control characters", async () => {
    expect(await run(String.raw`printf 'no \033[2Jpods'; exit 3`)).to.deep.equal({
      ok: false,
      message: "it exits with 3: no pods",
    });
    expect(await run("kill -9 $$")).to.have.property("message", "it ended by SIGKILL: no pods");
  });

  it("is terminated shortly before its time limit, and its last output is reported", async () => {
    const stuck = await run("echo evicting web; sleep 60", { limitSeconds: 60, spareSeconds: 57 });
    expect(stuck).to.deep.equal({ ok: false, message: "it ran out of its 60 s: evicting web" });
    const obliging = await run("trap 'exit 0' TERM; sleep 60 & wait", { limitSeconds: 60, spareSeconds: 57 });
    expect(obliging).to.have.property("ok", false);
  });

  it("that ignores SIGTERM gets a failure within its time limit", async () => {
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

  it("that ignores SIGTERM when the attendant leaves is waited for", async () => {
    const stop = new AbortController();
    const command = "trap '' TERM; echo $$; sleep 3.5";
    const ended = run(command, { limitSeconds: 3, spareSeconds: 1, signal: stop.signal }).catch(String);
    const pid = await eventually(() => existsSync(log()) && (Number(readFileSync(log(), "utf8")) || undefined));
    const mark = markProcess(pid);
    stop.abort(new Error("left"));
    expect(await ended).to.equal("Error: left");
    expect(isAlive(mark)).to.equal(false);
  });

  it("that is a gate is repeated until it succeeds", async () => {
    const command = "test -e tried || { touch tried; exit 1; }";
    expect(await run(command, { isRepeated: true })).to.deep.equal({ ok: true });
  });
});
