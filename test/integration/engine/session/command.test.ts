import { expect } from "chai";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runnerlessSessions } from "#engine/session/runnerless-session.ts";
import { sh } from "#engine/step/sh.ts";
import { isAlive, markProcess } from "#engine/run/process-mark.ts";
import { commandStep, draftOf, performOn, printedIn, sessionOn } from "#support/sessions.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

const open = runnerlessSessions({ query: "ping", stdin: async function* () {} });

describe("a command without a runner, through sshd", () => {
  let sshd: SshServer;
  let folder: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "kcore-command-"));
    sshd = await startSshd();
  });
  after(async () => {
    await sshd.stop();
    rmSync(folder, { recursive: true });
  });
  const endpoint = () => ({ ...sshd.endpoint(), name: "n1" });

  it("has no arguments", async () => {
    const run = await performOn(folder, [draftOf("it", commandStep(sh`echo $#`))], { endpoint: endpoint() }, open);
    expect(printedIn(run).join("")).to.equal("0\n");
  });

  it("has nothing of kcore in its environment", async () => {
    const run = await performOn(folder, [draftOf("it", commandStep(sh`exec env`))], { endpoint: endpoint() }, open);
    const names =
      printedIn(run)
        .join("")
        .match(/^\w+(?==)/gm) ?? [];
    expect(names.filter((name) => /^([a-z]|k_.*|K_.*|LC_ALL|IFS)$/.test(name))).to.deep.equal([]);
    expect(printedIn(run).join("")).to.contain("LANG=C.UTF-8\n");
  });

  it("reads its stdin from the first byte, however long its own text is", async () => {
    const stdin = async function* () {
      yield await Promise.resolve(Buffer.from("first\n"));
    };
    for (const more of ["", "é", "x".repeat(5_000)]) {
      const text = sh`exec sh -c 'cat; echo "\${#1}"' sh ${more}`;
      const run = await performOn(
        folder,
        [draftOf("it", commandStep(text))],
        { endpoint: endpoint() },
        runnerlessSessions({ query: "ping", stdin }),
      );
      expect(printedIn(run).join("")).to.match(/^first\n\d+\n$/);
    }
  });

  it("ends with all of its processes when the operator aborts it", async () => {
    const text = sh`exec sh -c 'sleep 1000 & echo $!; wait'`;
    const { session, seen, events } = sessionOn(folder, { endpoint: endpoint() }, open);
    const performed = session.perform([{ stage: "s", drafts: [draftOf("it", commandStep(text))] }]);
    await seen(({ type }) => type === "step.output");
    const pid = Number(printedIn({ events })[0]);
    const mark = markProcess(pid);
    session.abort();
    expect((await performed).outcome).to.equal("interrupted");
    await session.finish("interrupted");
    expect(isAlive(mark)).to.equal(false);
  });
});
