import { expect } from "chai";
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { blobOf } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { startDelayLine, type DelayLine } from "#support/delay-line.ts";
import { draftOf, sessionOn } from "#support/sessions.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

describe("a line that breaks at any byte", () => {
  let sshd: SshServer;
  let line: DelayLine;
  let folder: string;
  before(async () => {
    sshd = await startSshd();
    line = await startDelayLine({ target: { port: sshd.port } });
  });
  after(async () => {
    await line.close();
    await sshd.stop();
  });
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "kcore-cut-"));
    chmodSync(folder, 0o755);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const big = blobOf(Buffer.alloc(2_500_000, "all work and no play\n"));
  const put = (): Step => {
    const path = join(folder, "big");
    return {
      want: { content: big.sha256 },
      probe: sh`[ -f ${path} ] && fact content "$(sha256sum <${path} | cut -d" " -f1)" || fact content absent`,
      apply: sh`put_file ${big} ${path} 0644 root root`,
    };
  };
  const count = (name: string): Step => ({
    want: {},
    probe: sh``,
    apply: sh`echo x >>${join(folder, name)}; echo "output of ${name}"`,
    always: true,
  });
  const lines = (name: string): number =>
    existsSync(join(folder, name)) ? readFileSync(join(folder, name), "utf8").split("\n").length - 1 : 0;

  /** One run of two segments and a large blob, over a line that breaks once. */
  async function runOver(cut: () => void): Promise<void> {
    cut();
    const state = join(folder, "state");
    const run = sessionOn(state, { endpoint: { ...sshd.endpoint(), name: "n1", port: line.port }, runId: "cut" });
    const result = await run.session.perform([
      {
        stage: "s",
        drafts: [
          draftOf("one", count("one"), { register: "one" }),
          draftOf("put", put()),
          draftOf("two", () => count("two"), { needs: { facts: false, steps: ["one"] } }),
        ],
      },
    ]);
    await run.session.finish(result.outcome);
    expect(result.problem).to.equal(undefined);
    expect(run.outcomes()).to.deep.equal(["one changed", "put changed", "two changed"]);
    expect([lines("one"), lines("two")]).to.deep.equal([1, 1]);
    expect(readFileSync(join(folder, "big")).length).to.equal(big.size);
    const said = run.events.flatMap((event) => (event.type === "step.output" ? [event.text] : [])).join("");
    expect(said).to.equal("output of one\noutput of two\n");
    expect(readdirSync(join(state, "runs", "cut"))).to.deep.equal(["journal"]);
    expect(readFileSync(join(state, "runs", "cut", "journal"), "utf8")).to.match(/ bye done\n$/);
    rmSync(folder, { recursive: true, force: true });
  }

  for (const bytes of [6_000, 9_000, 14_000, 36_000, 60_000, 1_300_000, 2_500_000, 2_560_000])
    it(`F-1 loses nothing and repeats nothing when it breaks after ${bytes} bytes sent`, () =>
      runOver(() => line.cutNext("up", bytes)));
  for (const bytes of [3_100, 3_600, 4_000, 4_500, 5_200])
    it(`F-1 loses nothing and repeats nothing when it breaks after ${bytes} bytes received`, () =>
      runOver(() => line.cutNext("down", bytes)));
});
