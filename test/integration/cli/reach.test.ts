import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { type DelayLine, startDelayLine } from "#support/delay-line.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";
import { makeKey, type SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

const user = 3000;

/** An entry for a journal: seconds of 2026, unit and message. */
type Entry = readonly [at: number, unit: string, message: string];

const start = Date.UTC(2026, 0, 1) * 1000;

/** Adds entries to a journal file, as a real journal would have them. */
function writeJournal(file: string, entries: readonly Entry[]): void {
  const text = entries.map(([at, unit, message]) => {
    const time = start + at * 1_000_000;
    const size = Buffer.alloc(8);
    size.writeBigUInt64LE(BigInt(Buffer.byteLength(message)));
    const head = [
      `__REALTIME_TIMESTAMP=${time}`,
      `__MONOTONIC_TIMESTAMP=${at * 1_000_000 + 1}`,
      // With -f journalctl shows entries of this boot alone.
      `_BOOT_ID=${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim().replaceAll("-", "")}`,
      `_SYSTEMD_UNIT=${unit}.service`,
      "PRIORITY=6",
    ];
    return Buffer.concat([Buffer.from(`${head.join("\n")}\nMESSAGE\n`), size, Buffer.from(`${message}\n\n`)]);
  });
  execFileSync("/lib/systemd/systemd-journal-remote", ["-o", file, "-"], {
    input: Buffer.concat(text),
    stdio: ["pipe", "ignore", "ignore"],
  });
}

/** Whether the current folder of a process is this one. */
function isWorkingIn(folder: string): boolean {
  return globSync("/proc/[0-9]*/cwd").some((link) => {
    try {
      return readlinkSync(link) === folder;
    } catch {
      return false;
    }
  });
}

describe("kcore ssh, cp and logs", () => {
  let project: TestProject;
  let server: SshServer;
  let other: SshServer;
  let bare: SshServer;
  let line: DelayLine;
  let logs: readonly string[];
  before(async () => {
    project = new TestProject();
    const machine = readFileSync("/etc/machine-id", "utf8").trim();
    logs = ["n1", "n2"].map((name) => join(project.path, "log", name));
    for (const folder of logs) mkdirSync(join(folder, "journal", machine), { recursive: true });
    const [one = "", two = ""] = logs;
    logs = logs.map((folder) => join(folder, "journal", machine, "system.journal"));
    [server, other, bare] = await Promise.all([
      startSshd({ binds: [[one, "/var/log"]], users: [{ name: "ada" }] }),
      startSshd({ binds: [[two, "/var/log"]] }),
      startSshd({ binds: [["/dev/null", "/usr/bin/journalctl"]] }),
    ]);
    line = await startDelayLine({ target: { port: server.port } });
    const node = ({ identityFile, hostKey, port }: Pick<SshServer, "identityFile" | "hostKey" | "port">, more = "") =>
      `{ address: 127.0.0.1, port: ${port}, identityFile: ${identityFile}, hostKeys: ["${hostKey}"]${more} }`;
    const stranger = await makeKey(join(project.path, "stranger"));
    project.write({
      "project/roster/nodes.yaml": `nodes:
  n1: ${node({ ...server, port: line.port })}
  n2: ${node(other)}
  bare: ${node(bare)}
  behind: ${node(server, ", jump: [n2]")}
  wrong: ${node({ ...server, hostKey: stranger }, ", stateDir: /var/lib/kcore-wrong")}
  ada: ${node(server, ", user: ada, stateDir: /var/lib/kcore-ada")}
  here: { address: 127.0.0.1, transport: local, stateDir: ${project.path}/state }
  gone: { address: 127.0.0.1, port: 1, identityFile: ${project.path}/key }
`,
    });
  });
  after(async () => {
    await line?.close();
    await Promise.all([server, other, bare].map((one) => one?.stop()));
    await project.remove();
  });
  const inProject = (name: string) => join(project.project, name);
  const there = (name: string) => join(project.path, "there", name);
  beforeEach(() => mkdirSync(there(""), { recursive: true }));
  afterEach(() => rmSync(there(""), { recursive: true, force: true }));

  describe("ssh", () => {
    it("is ssh with the roster's way: streams, exit code, jump hosts, one line in the trail", async () => {
      const ended = await project.kcore("ssh", "behind", "--", "echo out; echo err >&2; exit 7");
      expect(ended).to.deep.equal({ code: 7, stdout: "out\n", stderr: "err\n" });
      const { stdout } = await project.kcore("audit", "show", "--runs", "-o", "json");
      expect((JSON.parse(stdout) as object[]).at(-1)).to.deep.include({
        type: "adhoc.started",
        command: "kcore ssh behind -- 'echo out; echo err >&2; exit 7'",
        nodes: ["behind"],
      });
      expect(statSync(inProject(".kcore/ssh/behind/config")).mode & 0o777).to.equal(0o600);
    });

    it("trusts the pinned keys alone", async () => {
      const { code, stderr } = await project.kcore("ssh", "wrong", "--", "true");
      expect([code, stderr.includes("Host key verification failed")]).to.deep.equal([255, true]);
    });

    it("prints the command for other programs", async () => {
      const { stdout } = await project.kcore("ssh", "--print", "n2");
      expect(stdout).to.equal(`ssh -F ${inProject(".kcore/ssh/n2/config")} -- 127.0.0.1\n`);
      expect(execFileSync("sh", ["-c", `${stdout.trim()} echo yes`], { encoding: "utf8" })).to.equal("yes\n");
    });

    it("runs a command as the login, and becomes root by sudo unless it must not", async () => {
      expect((await project.kcore("ssh", "--no-sudo", "ada", "--", "id -u")).stdout).to.equal(`${user}\n`);
      // The test's sudo knows no ada.
      expect((await project.kcore("ssh", "ada", "--", "id -u")).stderr).to.include("sudo");
    });

    it("is a shell of this machine for a local node, whose output is never cut", async () => {
      const { code, stdout } = await project.kcore("ssh", "here", "--", "seq 1 200000; exit 3");
      expect([code, stdout.length]).to.deep.equal([3, 1_288_895]);
    });

    it("gives a terminal of the right size, also by exec --tty", async () => {
      await project.atTerminal(async (shell) => {
        const kcore = join(import.meta.dirname, "../../../bin/kcore");
        await shell.enter(
          `${kcore} exec --on n2 --tty -- sh -c 'stty size; read -r x; echo "got $x"'; stty -a | grep -o -- ' echo '`,
        );
        await shell.shows(/^60 160$/m);
        await shell.enter("word");
        await shell.shows(/^got word\n[^$]*^ echo/m);
        await shell.wipe();
        await shell.enter(`${kcore} ssh n2`);
        await shell.shows(/^# ?$/m);
        await shell.enter("echo $((40+2)); exit 5");
        await shell.shows(/^42$/m);
        await shell.enter("echo code $?");
        await shell.shows(/^code 5$/m);
      });
      const { code, stderr } = await project.kcore("exec", "--on", "n1", "--tty", "--", "true");
      expect([code, stderr.includes("needs a terminal")]).to.deep.equal([2, true]);
      expect((await project.kcore("exec", "--on", "n1,n2", "--tty", "--", "true")).stderr).to.include("one node");
    });
  });

  interface Copied {
    readonly outcome: string;
    readonly sent?: number;
    readonly problem?: { readonly code: string; readonly hint?: string };
  }
  const copy = async (...words: readonly string[]): Promise<{ end: CommandEnd; results: readonly Copied[] }> => {
    const end = await project.kcore("cp", "-o", "json", ...words);
    return { end, results: end.stdout === "" ? [] : (JSON.parse(end.stdout) as Copied[]) };
  };
  const big = randomBytes(20_000_000);
  /** Copies until a megabyte is in the part, and cuts the line; `have`: the part's bytes in the end. */
  const copyAndCut = async (words: readonly string[], part: string) => {
    const copying = copy(...words);
    const size = () => statSync(join(part, "f"), { throwIfNoEntry: false })?.size ?? 0;
    while (size() < 1_000_000) await sleep(1);
    line.cut();
    line.heal();
    const ended = await copying;
    while (isWorkingIn(part)) await sleep(20);
    expect(size()).to.be.lessThan(big.length);
    return { ...ended, have: size() };
  };
  const sumOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

  describe("cp", () => {
    it("sends a file once, with its mode, and tells its sum", async () => {
      writeFileSync(inProject("a b"), "text\n", { mode: 0o640 });
      const sent = await project.kcore("cp", "a b", `n1:${there("x")}`);
      expect(sent.code, sent.stderr).to.equal(0);
      expect(sent.stdout).to.equal(`n1  a b → ${there("x")}  5 B; sent 5 B; sha256 ${sumOf(Buffer.from("text\n"))}\n`);
      expect([readFileSync(there("x"), "utf8"), statSync(there("x")).mode & 0o777]).to.deep.equal(["text\n", 0o640]);
      const { results } = await copy("--mode", "600", "a b", `n1:${there("")}/`);
      expect(results[0]).to.include({ destination: `${there("")}/a b`, sent: 5 });
      chmodSync(there("x"), 0o777);
      const again = await copy("a b", `n1:${there("x")}`);
      expect(again.results[0]).to.include({ sent: 0, bytes: 5 });
      expect(statSync(there("x")).mode & 0o777).to.equal(0o640);
    });

    it("goes on where a cut connection ended, in both directions, to the byte", async () => {
      writeFileSync(inProject("big"), big);
      const cut = await copyAndCut(["big", `n1:${there("big")}`], there(".big.kcore-part"));
      expect([cut.end.code, cut.results[0]?.problem?.code]).to.deep.equal([3, "HOST_LOST"]);
      expect(cut.results[0]?.problem?.hint).to.include("goes on");
      expect(existsSync(there("big"))).to.equal(false);
      const rest = await copy("big", `n1:${there("big")}`);
      expect(rest.results[0]).to.include({ bytes: big.length, sent: big.length - cut.have, sha256: sumOf(big) });
      expect(readFileSync(there("big")).equals(big)).to.equal(true);
      expect(existsSync(there(".big.kcore-part"))).to.equal(false);

      const cutBack = await copyAndCut([`n1:${there("big")}`, "got"], inProject(".got.kcore-part"));
      expect(cutBack.end.code).to.equal(3);
      const last = await copy(`n1:${there("big")}`, "got");
      expect(last.results[0]).to.include({ sent: big.length - cutBack.have });
      expect(readFileSync(inProject("got")).equals(big)).to.equal(true);
      // A part with other bytes is of no use.
      project.write({ "project/.new.kcore-part/f": "other bytes" });
      chmodSync(inProject(".new.kcore-part"), 0o700);
      expect((await copy(`n1:${there("big")}`, "new")).results[0]).to.include({ sent: big.length });
    });

    it("leaves a part at Ctrl-C", async () => {
      line.setRate(2_000_000);
      const { child, ended } = project.start(["cp", "big", `n1:${there("slow")}`]);
      while (!existsSync(there(".slow.kcore-part/f")) || statSync(there(".slow.kcore-part/f")).size === 0)
        await sleep(20);
      child.kill("SIGINT");
      expect((await ended).code).to.equal(130);
      line.setRate(undefined);
      expect((await copy("big", `n1:${there("slow")}`)).results[0]?.sent).to.be.lessThan(big.length);
      expect(readFileSync(there("slow")).equals(big)).to.equal(true);
    });

    it("sends the 3 of 200 files that differ, and removes nothing", async () => {
      for (let index = 0; index < 200; index++)
        project.write({ [`project/site/d${index % 7}/f${index}`]: `v1 ${index}\n` });
      symlinkSync("d0/f0", inProject("site/link"));
      mkdirSync(inProject("site/empty"));
      const first = await copy("-r", "site", `n1:${there("site")}`);
      expect(first.results[0], first.end.stderr).to.include({ files: 200, filesSent: 200 });
      project.write({ "project/site/d0/f0": "v2\n", "project/site/d1/f1": "v2\n" });
      chmodSync(inProject("site/d2/f2"), 0o755);
      writeFileSync(there("site/own"), "");
      const second = await copy("-r", "site", `n1:${there("site")}`);
      expect(second.results[0]).to.include({ filesSent: 3, sent: 3 + 3 + 5 });
      expect(readFileSync(there("site/d0/f0"), "utf8")).to.equal("v2\n");
      expect(statSync(there("site/d2/f2")).mode & 0o777).to.equal(0o755);
      expect([readlinkSync(there("site/link")), existsSync(there("site/empty"))]).to.deep.equal(["d0/f0", true]);
      expect([existsSync(there("site/own")), existsSync(there("site/.kcore-part"))]).to.deep.equal([true, false]);
      expect(
        execFileSync("diff", ["-r", inProject("site"), there("site"), "-x", "own"], { encoding: "utf8" }),
      ).to.equal("");
      writeFileSync(there("site/d3/f3"), "v3\n");
      const withMode = await copy("-r", "--mode", "600", "site", `n1:${there("site")}`);
      expect([withMode.end.code, withMode.end.stderr.includes("--recursive")]).to.deep.equal([2, true]);
      const back = await copy("-r", `n1:${there("site")}`, "site");
      expect(back.results[0], back.end.stderr).to.include({ files: 201, filesSent: 2, sent: 3 });
      expect(readFileSync(inProject("site/d3/f3"), "utf8")).to.equal("v3\n");
    });

    it("fetches from many nodes, and tells those that it cannot reach", async () => {
      writeFileSync(there("f"), "same\n");
      const many = await project.kcore("cp", "--on", "n1,n2,gone", `:${there("f")}`, "out/{{node.name}}/f");
      expect([many.code, many.stderr]).to.deep.include(3);
      expect(many.stderr).to.match(/^gone {2}unreachable/m);
      for (const node of ["n1", "n2"]) expect(readFileSync(inProject(`out/${node}/f`), "utf8")).to.equal("same\n");
      const missing = await copy(`n1:${there("none")}`, ".");
      expect([missing.end.code, missing.results[0]?.problem?.code]).to.deep.equal([1, "FILE_UNREADABLE"]);
    });

    it("follows no link out of a folder that another user can change", async () => {
      writeFileSync(inProject("a b"), "text\n");
      mkdirSync(there("theirs"));
      chownSync(there("theirs"), user, user);
      const victim = there("victim");
      writeFileSync(victim, "old\n");
      symlinkSync(victim, there("theirs/x"));
      const refused = await copy("a b", `n1:${there("theirs/x")}`);
      expect(refused.results[0]?.problem?.code).to.equal("FILE_PARENT_UNSAFE");
      // With the owner's own name the link is replaced, and the file is the owner's.
      const owned = await copy("--owner", "ada", "a b", `n1:${there("theirs/x")}`);
      expect(owned.end.code, owned.end.stdout).to.equal(0);
      expect([lstatSync(there("theirs/x")).isFile(), lstatSync(there("theirs/x")).uid]).to.deep.equal([true, user]);
      // A part that the user has planted is not used.
      symlinkSync(there(""), there("theirs/.y.kcore-part"));
      const planted = await copy("--owner", "ada", "a b", `n1:${there("theirs/y")}`);
      expect(planted.results[0]?.problem?.code).to.equal("FILE_PARENT_UNSAFE");
      const folder = await copy("-r", "site", `n1:${there("theirs/site")}`);
      expect(folder.results[0]?.problem?.code).to.equal("FILE_PARENT_UNSAFE");
      expect(readFileSync(victim, "utf8")).to.equal("old\n");
    });

    it("writes through no link of a fetched folder's place here", async () => {
      mkdirSync(there("tree/sub"), { recursive: true });
      writeFileSync(there("tree/sub/f"), "evil\n");
      mkdirSync(inProject("in"), { recursive: true });
      symlinkSync(project.path, inProject("in/sub"));
      const { results } = await copy("-r", `n1:${there("tree")}`, "in");
      expect(results[0]?.problem?.code).to.equal("FILE_IN_THE_WAY");
      expect(existsSync(join(project.path, "f"))).to.equal(false);
    });
  });

  describe("logs", () => {
    before(() => {
      const [one = "", two = ""] = logs;
      writeJournal(one, [
        [1, "ssh", "one"],
        [3, "web", "three\nsecond line \u001b[31mred"],
        [5, "ssh", "five"],
      ]);
      writeJournal(two, [
        [2, "ssh", "two"],
        [4, "ssh", "four"],
      ]);
    });

    it("merges the journals by time, and writes control characters out", async () => {
      const { code, stdout, stderr } = await project.kcore("logs", "n1", "n2");
      expect([code, stderr]).to.deep.equal([0, ""]);
      expect(stdout).to.equal(
        [
          "2026-01-01T00:00:01.000Z n1 ssh: one",
          "2026-01-01T00:00:02.000Z n2 ssh: two",
          "2026-01-01T00:00:03.000Z n1 web: three",
          "2026-01-01T00:00:03.000Z n1 web: second line red",
          "2026-01-01T00:00:04.000Z n2 ssh: four",
          "2026-01-01T00:00:05.000Z n1 ssh: five",
          "",
        ].join("\n"),
      );
    });

    it("asks for units, patterns, times and the last entries", async () => {
      const messages = async (...words: readonly string[]) =>
        (await project.kcore("logs", "n1,n2", "-o", "json", ...words)).stdout
          .split("\n")
          .filter((text) => text !== "")
          .map((text) => (JSON.parse(text) as { message: string }).message);
      expect(await messages("-u", "ssh", "-n", "1")).to.deep.equal(["four", "five"]);
      expect(await messages("--grep", "o|iv", "-n", "1")).to.deep.equal(["four", "five"]);
      expect(await messages("--since", "9999d", "-u", "web")).to.deep.equal(["three\nsecond line \u001b[31mred"]);
      expect(await messages("--since", "1m")).to.deep.equal([]);
      const bad = await project.kcore("logs", "n1", "--grep", "(");
      expect([bad.code, bad.stderr]).to.deep.include(1);
      expect(bad.stderr).to.include("journalctl on n1");
    });

    it("names a node without journalctl, and shows the others' logs", async () => {
      const { code, stdout, stderr } = await project.kcore("logs", "n2", "bare");
      expect([code, stdout.includes("n2   ssh: four")]).to.deep.equal([1, true]);
      expect(stderr).to.match(/^bare {2}failed: bare has no journalctl {2}\[TOOL_MISSING\]/m);
    });

    it("follows, and ends at Ctrl-C, also beside a node that it cannot reach", async () => {
      const { child, ended } = project.start(["logs", "n1", "n2", "gone", "-f", "-n", "1", "-u", "ssh"]);
      let seen = "";
      child.stdout?.on("data", (text: string) => (seen += text));
      while (!/four\n.*five\n/.test(seen)) await sleep(20);
      writeJournal(logs[1] ?? "", [[7, "ssh", "seven"]]);
      while (!seen.includes("seven")) await sleep(20);
      child.kill("SIGINT");
      expect((await ended).code).to.equal(130);
      while (execFileSync("sh", ["-c", "pgrep -fc '[j]ournalctl .*--follow' || true"], { encoding: "utf8" }) !== "0\n")
        await sleep(20);
    });
  });
});
