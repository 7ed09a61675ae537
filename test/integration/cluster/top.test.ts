import { join } from "node:path";
import { expect } from "chai";
import { ClusterSite } from "#support/cluster-site.ts";
import { readLines } from "#api/read-lines.ts";
import { WatchLine } from "#api/controller-schemas.ts";
import type { FleetSnapshot } from "#tui/ink/fleet/snapshot.ts";
import type { TestController } from "#support/controllers.ts";
import { kcoreProgram } from "#support/deploy.ts";
import type { ShellTerminal } from "#support/terminal.ts";

describe("kcore top against three real controllers", () => {
  let site: ClusterSite;
  let controllers: readonly TestController[];
  let terminal: ShellTerminal | undefined;
  const at = (index: number): TestController => site.at(index);

  const register = async (name: string, changes: object = {}, through = at(0)): Promise<string> =>
    (await site.register(name, changes, through)).id;

  before(async () => {
    site = await ClusterSite.open(3, { dcs: ["DC1", "DC1", "DC2"] });
    ({ controllers } = site);
    await register("n1");
    await register("n2", { dc: "DC2" });
  });
  afterEach(async () => {
    await terminal?.close();
    terminal = undefined;
  });
  after(() => site?.stop());

  async function openTop(words: string, columns = 110, rows = 24): Promise<ShellTerminal> {
    const path = `${join(kcoreProgram, "..")}:${process.env["PATH"] ?? ""}`;
    terminal = await site.openShell(columns, rows, { NO_COLOR: "1", PATH: path });
    await terminal.enter("echo before; stty sane");
    await terminal.enter(`kcore top ${words}`);
    return terminal;
  }

  const kcore = (...words: readonly string[]) => site.call(...words);

  it("refuses without a terminal, and names the alternatives", async () => {
    const { code, stderr } = await kcore("top");
    expect(code).to.equal(2);
    expect(stderr).to.contain("kcore top needs a terminal");
    expect(stderr).to.contain("kcore get nodes -w");
    const { code: other } = await kcore("top", "-o", "json");
    expect(other).to.equal(2);
  });

  it("names the controllers that are unreachable, and leaves the terminal as it was", async () => {
    const shell = await openTop("-s 127.0.0.1:1");
    const screen = await shell.shows(/API_UNREACHABLE/);
    expect(screen).to.contain("before");
  });

  it("--once prints the present state as text and as JSON", async () => {
    const { code, stdout, stderr } = await kcore("top", "--once");
    expect([code, stderr]).to.deep.equal([0, ""]);
    expect(stdout).to.match(/^context lab, as reported by 127\.0\.0\.11:\d+ at /);
    expect(stdout).to.match(/^n1 +Ready +worker +DC1 /m);
    expect(stdout).to.match(/^DC2 +1 +1 +0 +0 +0 +1\/1$/m);
    expect(stdout).to.match(/^controllers: 3$/m);
    expect(stdout).to.match(/^no conflicts$/m);
    const { stdout: json } = await kcore("top", "--once", "-o", "json");
    const { nodes, controllers: found } = JSON.parse(json) as FleetSnapshot;
    expect(nodes.map(({ hostname }) => hostname).toSorted()).to.deep.equal(["n1", "n2"]);
    expect(found.map(({ replication }) => replication?.healthy)).to.deep.equal([true, true, true]);
  });

  it("gets only changes from a watch that has the present state", async () => {
    const stream = await at(1).operator.open("watch", {});
    const lines = readLines(stream, WatchLine);
    await register("n0", { dc: "DC3" });
    const line: unknown = (await lines.next()).value;
    expect(line).to.have.property("type").that.is.oneOf(["register", "soft"]);
    stream.destroy();
  });

  it("shows changes live, fails over to the next controller, and restores the terminal", async () => {
    const shell = await openTop(controllers.map(({ endpoint }) => `-s ${endpoint}`).join(" "));
    const first = await shell.shows(/✓ live +127\.0\.0\.11:/);
    expect(first).to.match(/✓ n1 +Ready +worker +DC1/);
    expect(first).to.contain("3 nodes:  ✓ 3 ready");

    // A change at another controller is shown, too.
    const id = await register("n3", { dc: "DC2" }, at(2));
    await shell.shows(/✓ n3 +Ready +worker +DC2/);

    await shell.press("/");
    await shell.enter("n3");
    await shell.shows(/only “n3”: 1/);
    await shell.press("Enter");
    const open = await shell.shows(/── n3 ──/);
    expect(open).to.contain(id);
    await shell.press("Escape");
    // A terminal reads Esc and a letter in one write as one key (Alt).
    await shell.shows(/only “n3”: 1/);
    await shell.press("a", "3");
    await shell.shows(/127\.0\.0\.13:\d+ +DC2 +connected .*yes/);

    await at(0).stop();
    const lost = await shell.shows(/lost 127\.0\.0\.11:\d+, trying 127\.0\.0\.1[23]|✓ live +127\.0\.0\.12:/);
    expect(lost).to.match(/127\.0\.0\.13/);
    await shell.shows(/✓ live +127\.0\.0\.12:/);
    await shell.shows(/127\.0\.0\.11:\d+ +DC1 +(down|suspect|connecting)/);

    // Without any controller the last data stay on the screen, marked as stale.
    await at(1).stop();
    await at(2).stop();
    await shell.shows(/lost 127\.0\.0\.1\d:\d+, trying 127\.0\.0\.1\d/);
    await shell.press("1");
    const stale = await shell.shows(/4 nodes +stale/);
    expect(stale).to.match(/n1 +Ready/);
    for (const [columns, rows] of [
      [60, 15],
      [40, 8],
      [110, 24],
    ] as const) {
      await shell.resize(columns, rows);
      await shell.shows(/── 4 nodes/);
    }

    await at(1).start();
    await shell.shows(/✓ live +127\.0\.0\.12:/);
    await shell.press("q");
    await shell.shows(/^before$/m);
    await shell.enter("echo code-$?; stty -a | tr ' ' '\\n' | grep -cx -e isig -e icanon -e echo -e icrnl");
    const after = await shell.shows(/^code-0\n4$/m);
    expect(after).to.not.contain("live");
  });
});
