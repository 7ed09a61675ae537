import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { unitName, unitsOf } from "#cli/reconcile/timer-units.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

/** A line to a server, which can be down: then its port refuses connections. */
class Line {
  readonly #sockets = new Set<Socket>();
  readonly #to: number;
  #server: Server | undefined;
  port = 0;

  constructor(to: number) {
    this.#to = to;
  }

  async up(): Promise<void> {
    this.#server = createServer((socket) => {
      const far = connect(this.#to, "127.0.0.1");
      for (const one of [socket, far]) this.#sockets.add(one.on("error", () => undefined));
      socket.pipe(far).pipe(socket);
    }).listen(this.port, "127.0.0.1");
    await once(this.#server, "listening");
    this.port = (this.#server.address() as { port: number }).port;
  }

  async down(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server?.close();
    await (this.#server?.listening ? once(this.#server, "close") : undefined);
  }
}

interface Pass {
  readonly code: number | null;
  readonly outcome: string;
  readonly revision?: string;
  readonly differs: Readonly<Record<string, readonly string[]>>;
  readonly away: readonly string[];
  readonly run?: string;
  readonly reasons: readonly string[];
}

describe("kcore reconcile", () => {
  let servers: readonly [SshServer, SshServer];
  let line: Line;
  let project: TestProject;
  before(async () => {
    servers = [await startSshd(), await startSshd()];
    line = new Line(servers[1].port);
    await line.up();
  });
  after(async () => {
    await line.down();
    for (const server of servers) await server.stop();
  });

  const origin = (): string => join(project.path, "origin");
  const git = (folder: string, ...words: readonly string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", "-C", folder, ...words], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  const write = (files: Readonly<Record<string, string>>): void => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(origin(), name)), { recursive: true });
      writeFileSync(join(origin(), name), text);
    }
  };
  const commit = (files: Readonly<Record<string, string>>, ...words: readonly string[]): string => {
    write(files);
    git(origin(), "add", "--all");
    git(origin(), "commit", "--quiet", "--message", "a change", ...words);
    return git(origin(), "rev-parse", "HEAD");
  };
  const file = (name: string): string => join(project.path, "nodes", name);
  const read = (name: string): string => readFileSync(file(name), "utf8");
  const managed = (name: string, content: string): string =>
    `  - { id: ${name}, file.managed: { path: "${project.path}/nodes/{{node.name}}-${name}", content: "${content}" } }\n`;
  const web = (...steps: readonly string[]) => ({ "states/web.yaml": `steps:\n${steps.join("")}` });
  const settings = (more: string) => ({ "kcore.yaml": `reconcile: { run: { state: [web] }, ${more} }\n` });
  const pass = async (): Promise<Pass> => {
    const { code, stdout, stderr } = await project.kcore("reconcile", "-o", "json");
    expect(stdout, stderr).to.not.equal("");
    return { code, ...(JSON.parse(stdout) as Omit<Pass, "code">) };
  };
  const expectEnd = async (code: number, outcome: string): Promise<Pass> => {
    const made = await pass();
    expect([made.code, made.outcome], JSON.stringify(made)).to.deep.equal([code, outcome]);
    return made;
  };
  /** The notices that were sent since the last call. */
  const told = (): readonly string[] => {
    const path = join(project.path, "told");
    const lines = existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
    rmSync(path, { force: true });
    return lines.map((text) => {
      const { question, problem } = JSON.parse(text) as { question?: string; problem?: string };
      return question ?? problem ?? "";
    });
  };
  const entries = async (): Promise<readonly { type: string; outcome: string; repeats?: number }[]> => {
    const { stdout } = await project.kcore("audit", "show", "--runs", "-o", "json");
    return (JSON.parse(stdout) as { type: string; outcome: string }[]).filter(({ type }) => type === "reconcile.pass");
  };
  const runs = async (): Promise<readonly { dryRun: boolean; nodes: unknown }[]> =>
    JSON.parse((await project.kcore("runs", "list", "-o", "json")).stdout) as { dryRun: boolean; nodes: unknown }[];
  const apply = (...words: readonly string[]): Promise<CommandEnd> =>
    project.kcore("state", "apply", "web", "--on", "*", ...words);

  beforeEach(() => {
    project = new TestProject();
    const [first, second] = servers;
    const node = (name: string, port: number, { identityFile, hostKey }: SshServer): string =>
      `  ${name}: { address: 127.0.0.1, port: ${port}, user: root, hostKeys: ["${hostKey}"], identityFile: "${identityFile}", stateDir: ${project.path}/state-${name} }\n`;
    mkdirSync(join(project.path, "nodes"));
    for (const name of ["n1", "n2"]) mkdirSync(join(project.path, `state-${name}`), { mode: 0o700 });
    rmSync(project.project, { recursive: true });
    mkdirSync(origin());
    git(origin(), "init", "--quiet", "--initial-branch", "main");
    commit({
      "roster/nodes.yaml": `nodes:\n${node("n1", first.port, first)}${node("n2", line.port, second)}`,
      "orchestrate/README.md": "",
      ".gitignore": ".kcore/\n",
      "notify.yaml": `- { on: [failure, question], command: [sh, -c, "cat >>${project.path}/told"] }\n`,
      ...web(managed("issue", "one")),
      ...settings(""),
    });
    git(project.path, "clone", "--quiet", origin(), project.project);
  });
  afterEach(() => project.remove());

  it("lets nodes follow commits, mends drift, goes back by a revert, and does nothing twice", async () => {
    const first = await expectEnd(0, "applied");
    expect(first.differs).to.deep.equal({ n1: ["web: issue"], n2: ["web: issue"] });
    expect([read("n1-issue"), read("n2-issue")]).to.deep.equal(["one", "one"]);
    for (let count = 0; count < 3; count++) await expectEnd(0, "in order");
    expect(await runs()).to.have.length(1);
    expect((await entries()).map(({ outcome }) => outcome)).to.deep.equal(["applied", "in order"]);

    const second = commit(web(managed("issue", "two"), managed("motd", "new")));
    expect((await expectEnd(0, "applied")).revision).to.equal(second);
    expect([read("n1-issue"), read("n2-motd")]).to.deep.equal(["two", "new"]);

    writeFileSync(file("n1-issue"), "by hand");
    expect((await project.kcore("drift")).stdout).to.match(/n1 +web: issue +file.managed +content/);
    expect((await project.kcore("drift")).code).to.equal(4);
    expect(read("n1-issue"), "drift changes nothing").to.equal("by hand");
    expect((await expectEnd(0, "applied")).differs).to.deep.equal({ n1: ["web: issue"] });
    expect(read("n1-issue")).to.equal("two");
    expect((await project.kcore("runs", "show", "last", "-o", "json")).stdout).to.not.contain('"n2"');

    git(origin(), "revert", "--no-edit", "HEAD");
    const back = await expectEnd(0, "applied");
    expect([read("n1-issue"), read("n2-motd")]).to.deep.equal(["one", "new"]);
    const left = told();
    expect(left).to.have.length(2);
    expect(left[0])
      .to.contain(`n1: no longer managed: file ${file("n1-motd")}`)
      .and.contain("to remove it: file.absent");
    expect(back.reasons).to.deep.equal(left);

    const kept = JSON.parse(readFileSync(join(project.project, ".kcore/applied/n1.json"), "utf8")) as object;
    expect(kept).to.include({ revision: git(origin(), "rev-parse", "HEAD"), isWhole: true, dirty: false });
    expect((await project.kcore("audit", "verify", "--runs")).code).to.equal(0);
    expect((await entries()).map(({ repeats = 0 }) => repeats)).to.deep.equal([0, 0, 2, 0, 0]);
    const history = await project.kcore("drift", "--since", "1h");
    expect(history.stdout.match(/n1 +web: issue +kcore (drift|reconcile)/g)).to.have.length(5);
  });

  it("lets a broken commit harm no node, tells it once, and keeps to the commit before", async () => {
    const good = (await expectEnd(0, "applied")).revision;
    commit(web("  - { id: issue, file.manged: { path: /x } }\n"));
    const broken = await expectEnd(1, "in order");
    expect(broken.revision).to.equal(good);
    expect(told()).to.deep.equal(broken.reasons);
    expect(broken.reasons.join()).to.contain("no state module “file.manged”");
    const history = (await project.kcore("drift", "--since", "1h")).stdout;
    expect(history).to.match(/ - +.*no state module “file\.manged”.* kcore reconcile$/m);
    expect((await project.kcore("audit", "show")).stdout).to.match(/reconcile\.pass .*in order; .*file\.manged/);
    writeFileSync(file("n2-issue"), "by hand");
    await expectEnd(1, "applied");
    expect(read("n2-issue")).to.equal("one");
    expect([git(project.project, "rev-parse", "HEAD"), told()]).to.deep.equal([good, []]);
    commit(web(managed("issue", "mended")));
    await expectEnd(0, "applied");
    expect(read("n1-issue")).to.equal("mended");
  });

  it("applies nothing of a rewritten branch or in an edited clone, until a person says so", async () => {
    await expectEnd(0, "applied");
    writeFileSync(file("n1-issue"), "by hand");
    commit(web(managed("issue", "rewritten")), "--amend");
    const refused = await expectEnd(1, "refused");
    expect(refused.reasons.join()).to.contain("main was rewritten").and.contain("RECONCILE_DIVERGED");
    await expectEnd(1, "refused");
    expect([read("n1-issue"), told().length]).to.deep.equal(["by hand", 1]);
    git(project.project, "reset", "--quiet", "--hard", "origin/main");
    await expectEnd(0, "applied");
    expect(read("n1-issue")).to.equal("rewritten");
    writeFileSync(join(project.project, "states/web.yaml"), "steps: []\n");
    expect((await expectEnd(1, "refused")).reasons.join())
      .to.contain("states/web.yaml")
      .and.contain("PROJECT_DIRTY");
    git(project.project, "checkout", "--quiet", ".");
    git(project.project, "remote", "set-url", "origin", join(project.path, "nowhere"));
    expect((await expectEnd(1, "refused")).reasons.join()).to.contain("RECONCILE_GIT");
  });

  it("leaves a node alone that is down, and catches it up later", async () => {
    await line.down();
    const first = await expectEnd(3, "applied");
    expect([first.away, existsSync(file("n2-issue"))]).to.deep.equal([["n2"], false]);
    expect((await project.kcore("drift", "--since", "1h")).stdout).to.match(/ n2 +not compared +kcore reconcile$/m);
    await expectEnd(3, "in order");
    await line.up();
    expect((await expectEnd(0, "applied")).differs).to.deep.equal({ n2: ["web: issue"] });
    expect([read("n2-issue"), told()]).to.deep.equal(["one", []]);
  });

  it("leaves more than the limits to a person, and tells that once", async () => {
    commit(settings("maxNodes: 1"));
    const waits = await expectEnd(4, "pending");
    await expectEnd(4, "pending");
    expect(waits.reasons.join()).to.contain("more nodes differ than a pass may change (1)");
    expect(told()).to.deep.equal([
      "more nodes differ than a pass may change (1); to do it: kcore state apply web --on '*'",
    ]);
    expect(existsSync(file("n1-issue"))).to.equal(false);
    expect((await apply()).code).to.equal(0);
    await expectEnd(0, "in order");
    writeFileSync(file("n1-issue"), "by hand");
    await expectEnd(0, "applied");
    expect(read("n1-issue")).to.equal("one");
  });

  it("tries a failed run again after a while, and a mended one at once", async () => {
    commit(web(`  - { id: fails, command.run: { cmd: "exit 7" } }\n`));
    await expectEnd(1, "failed");
    expect((await expectEnd(4, "pending")).reasons.join()).to.contain("a later pass tries it again");
    await expectEnd(1, "failed");
    expect(await runs()).to.have.length(2);
    commit(web(managed("issue", "mended"), `  - { id: count, command.run: { cmd: "echo >>${file("count")}" } }\n`));
    await expectEnd(0, "applied");
    await expectEnd(0, "in order");
    expect(read("count"), "a step without a probe runs once for a commit").to.equal("\n\n");
  });

  it("keeps uncommitted work beside the project, and the clone at the commit before, when it refuses a commit", async () => {
    const root = join(project.path, "whole");
    git(project.path, "clone", "--quiet", origin(), root);
    const inner = join(root, "fleet");
    mkdirSync(inner);
    for (const name of ["roster", "orchestrate", "states", "kcore.yaml", "notify.yaml"])
      git(root, "mv", name, join("fleet", name));
    writeFileSync(join(root, "beside.txt"), "committed\n");
    git(root, "add", "--all");
    git(root, "commit", "--quiet", "--message", "the project in a folder");
    git(root, "push", "--quiet", "origin", "HEAD:refs/heads/folder");
    git(origin(), "checkout", "--quiet", "folder");
    const branch = (more: string) => `reconcile: { branch: folder, run: { state: [web] } }\n${more}`;
    commit({ "fleet/kcore.yaml": branch("") });
    git(root, "fetch", "--quiet");
    git(root, "checkout", "--quiet", "-B", "folder", "origin/folder");
    rmSync(project.project, { recursive: true });
    symlinkSync(inner, project.project);
    const good = (await expectEnd(0, "applied")).revision;
    writeFileSync(join(root, "beside.txt"), "by hand\n");
    commit({ "fleet/states/web.yaml": "steps:\n  - { id: issue, file.manged: { path: /x } }\n" });
    expect((await expectEnd(1, "in order")).reasons.join()).to.contain("states/web.yaml:2");
    expect(readFileSync(join(root, "beside.txt"), "utf8")).to.equal("by hand\n");
    expect(git(root, "rev-parse", "HEAD")).to.equal(good);
    expect(git(root, "worktree", "list").split("\n")).to.have.length(1);
  });

  it("judges a commit after the remains of a killed pass, and one that an operator merged, too", async () => {
    const good = (await expectEnd(0, "applied")).revision;
    const remains = join(project.project, ".kcore/reconcile/commit");
    git(project.project, "worktree", "add", "--quiet", "--detach", remains, "HEAD");
    const merged = commit(web(managed("issue", "two")));
    git(project.project, "pull", "--quiet", "--ff-only");
    commit(web("  - { id: issue, file.manged: { path: /x } }\n"));
    const broken = await expectEnd(1, "applied");
    expect([broken.revision, read("n1-issue")]).to.deep.equal([merged, "two"]);
    expect(broken.revision).to.not.equal(good);
    expect([existsSync(remains), git(project.project, "worktree", "list").split("\n").length]).to.deep.equal([
      false,
      1,
    ]);
  });

  it("refuses a commit without its settings or with work that does not exist, and follows the next one", async () => {
    const good = (await expectEnd(0, "applied")).revision;
    for (const [text, code] of [
      ["cluster: prod\n", "RECONCILE_UNSET"],
      ["reconcile: { run: { state: [wbe] } }\n", "STATE_NOT_FOUND"],
      ["reconcile: { run: { orchestrate: wbe } }\n", "ORCHESTRATION_NOT_FOUND"],
    ] as const) {
      commit({ "kcore.yaml": text });
      const refused = await expectEnd(1, "in order");
      expect([refused.revision, refused.reasons.join()]).to.satisfy(
        ([revision, reasons]: string[]) => revision === good && reasons?.includes(code),
        JSON.stringify(refused),
      );
    }
    commit({ ...settings(""), ...web(managed("issue", "mended")) });
    await expectEnd(0, "applied");
    expect(read("n1-issue")).to.equal("mended");
  });

  it("runs a step without a probe once for a commit, whatever other runs do", async () => {
    const counts = `  - { id: count, command.run: { cmd: "echo >>${file("count")}" } }\n`;
    const other = (cmd: string) => ({
      "states/other.yaml": `steps:\n  - { id: other, command.run: { cmd: "${cmd}" } }\n`,
    });
    commit({ ...settings("on: n1"), ...web(counts), ...other("true") });
    const applyOther = (): Promise<CommandEnd> => project.kcore("state", "apply", "other", "--on", "n1");
    git(project.project, "pull", "--quiet", "--ff-only");
    expect((await applyOther()).code).to.equal(0);
    await expectEnd(0, "applied");
    expect(read("count"), "other work at this commit is not the commit's work").to.equal("\n");
    expect((await applyOther()).code).to.equal(0);
    await expectEnd(0, "in order");
    commit(other("exit 1"));
    await expectEnd(0, "applied");
    expect((await applyOther()).code).to.equal(1);
    await expectEnd(0, "in order");
    expect(read("count")).to.equal("\n\n");
  });

  it("tells earlier differences of work alone, and refuses names beside --since", async () => {
    expect((await project.kcore("state", "apply", "web", "--on", "n1", "--dry-run")).code).to.equal(0);
    await project.kcore("validate", "--on", "n1");
    const { stdout } = await project.kcore("drift", "--since", "1h", "-o", "json");
    expect((JSON.parse(stdout) as { command: string }[]).map(({ command }) => command)).to.deep.equal([
      "kcore state apply web --on n1 --dry-run",
    ]);
    for (const words of [["web"], ["--on", "n1"]]) {
      const { code, stderr } = await project.kcore("drift", ...words, "--since", "1h");
      expect([code, stderr.includes("USAGE")], stderr).to.deep.equal([2, true]);
    }
  });

  it("applies only commits with a signature that git trusts, if the project asks for that", async () => {
    const key = (name: string): string => {
      execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", join(project.path, name)]);
      return join(project.path, name);
    };
    const [ours, theirs] = [key("ours"), key("theirs")];
    writeFileSync(join(project.path, "signers"), `a@b.c ${readFileSync(`${ours}.pub`, "utf8")}`);
    git(project.project, "config", "gpg.ssh.allowedSignersFile", join(project.path, "signers"));
    const signed = (by: string, files: Readonly<Record<string, string>>): string => {
      git(origin(), "config", "gpg.format", "ssh");
      git(origin(), "config", "user.signingkey", by);
      return commit(files, "-S");
    };
    const asks = { "kcore.yaml": "runs: { requireSigned: true }\nreconcile: { run: { state: [web] } }\n" };
    const good = signed(ours, asks);
    await expectEnd(0, "applied");
    const unsigned = () => commit(web(managed("issue", "two")));
    for (const make of [unsigned, () => signed(theirs, web(managed("issue", "three")))]) {
      const bad = make();
      expect((await expectEnd(1, "in order")).revision).to.equal(good);
      expect(told().join()).to.contain(bad.slice(0, 12)).and.contain("COMMIT_UNSIGNED");
    }
    git(project.project, "reset", "--quiet", "--hard", "origin/main");
    expect((await apply()).stderr).to.contain("COMMIT_UNSIGNED");
    expect((await apply("--dry-run")).code).to.equal(0);
    expect(read("n1-issue")).to.equal("one");
    signed(ours, web(managed("issue", "four")));
    await expectEnd(0, "applied");
    expect(read("n1-issue")).to.equal("four");
  });

  it("refuses a second pass beside the first, and a project without the settings", async () => {
    const gate = file("gate");
    execFileSync("mkfifo", [gate]);
    const waits = web(`  - { id: waits, unless: "cat ${gate}", command.run: { cmd: "true" } }\n`);
    commit({ ...waits, ...settings("on: n1") });
    const { ended } = project.start(["reconcile"]);
    // The FIFO opens for writing once the step of the first pass reads it.
    const tooEarly = ended.then(({ stdout, stderr }) => Promise.reject(new Error(stdout + stderr)));
    const writer = await Promise.race([open(gate, "w"), tooEarly]);
    tooEarly.catch(() => undefined);
    expect((await project.kcore("reconcile")).stderr).to.contain("RECONCILE_BUSY");
    await writer.close();
    expect((await ended).code).to.equal(0);
    git(project.project, "rm", "--quiet", "kcore.yaml");
    expect((await project.kcore("reconcile")).stderr).to.contain("RECONCILE_UNSET");
    // The command reads no settings: only systemd, which has no such timer, or a missing sudo refuses.
    expect((await project.kcore("reconcile", "--uninstall")).stderr).to.match(/RECONCILE_TIMER|USAGE/);
  });

  it("names the units of each project apart, as systemd escapes its path", () => {
    for (const path of ["/srv/a-b", "/srv/a/b", "/srv/a_b", "/srv/.a/ü 100%", "//srv//a.b/"]) {
      const escaped = execFileSync("systemd-escape", ["--path", path], { encoding: "utf8" }).trim();
      expect(unitName(path)).to.equal(`kcore-reconcile-${escaped}`);
    }
  });

  it("has units that systemd accepts", () => {
    const odd = join(project.path, "a project of 100%");
    const units = unitsOf(odd, "root", "10m");
    const names = Object.entries(units).map(([ending, text]) => {
      writeFileSync(join(project.path, `kcore-reconcile-a.${ending}`), text);
      return join(project.path, `kcore-reconcile-a.${ending}`);
    });
    execFileSync("systemd-analyze", ["verify", ...names], { stdio: "pipe" });
    expect(units.service).to.contain(`kcore" reconcile --project "${odd.replace("%", "%%")}"`);
  });
});
