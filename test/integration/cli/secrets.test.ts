import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { lock } from "#engine/encrypted-values/age.ts";
import { eventually } from "#support/cluster.ts";
import { kcoreProgram } from "#support/deploy.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";
import { kcoreEnvironment } from "#support/program.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

const ROSTER = "roster/nodes.yaml";

describe("secrets in git", () => {
  let project: TestProject;
  let home: string;

  beforeEach(() => {
    project = new TestProject();
    home = join(project.path, "home");
  });
  afterEach(() => project.remove());

  /** `kcore secrets …` as this user, with a configuration folder of the user's own. */
  function secrets(words: readonly string[], { input = "", who = "alice", env = {} } = {}): CommandEnd {
    const { status, stdout, stderr } = spawnSync(kcoreProgram, ["secrets", ...words], {
      cwd: project.project,
      env: { ...environment(who), ...env },
      input,
      encoding: "utf8",
    });
    return { code: status, stdout, stderr };
  }
  const environment = (who: string): Record<string, string> => ({
    ...(process.env as Record<string, string>),
    ...kcoreEnvironment,
    KCORE_HOME: home,
    XDG_CONFIG_HOME: join(project.path, who),
  });
  const run = (...words: readonly string[]): Promise<CommandEnd> =>
    project.start(words, { XDG_CONFIG_HOME: join(project.path, "alice"), SSH_AUTH_SOCK: "" }).ended;
  const text = (file: string): string => readFileSync(join(project.project, file), "utf8");
  const identity = (who: string): string => join(project.path, who, "kcore", "age-identity.txt");

  function recipient(who: string): string {
    const made = secrets(["keygen"], { who });
    expect(made.code, made.stderr).to.equal(0);
    return made.stdout.trim();
  }
  function addAlice(): void {
    const added = secrets(["recipients", "add", "alice", recipient("alice")]);
    expect(added.code, added.stderr).to.equal(0);
  }
  it("recipients add takes the user's only identity when no key is given", async () => {
    const noIdentity = secrets(["recipients", "add", "alice"]);
    expect([noIdentity.code, noIdentity.stderr]).to.deep.equal([2, noIdentity.stderr]);
    expect(noIdentity.stderr).to.contain("[SECRET_IDENTITY]").and.to.contain("kcore secrets keygen");
    const key = recipient("alice");
    expect(secrets(["keygen"]).stderr).to.contain("kcore secrets recipients add NAME");
    expect(secrets(["recipients", "add", "alice"]).code).to.equal(0);
    expect(text("recipients.yaml")).to.match(new RegExp(`^alice: "?${key}"?$`, "m"));
    set("nodes.here.vars.token", "canary-3381");
    expect(secrets(["show", ROSTER, "nodes.here.vars.token"]).stdout.trim()).to.equal("canary-3381");

    const other = recipient("bob");
    writeFileSync(identity("alice"), readFileSync(identity("alice"), "utf8") + readFileSync(identity("bob"), "utf8"));
    const two = secrets(["recipients", "add", "again"]);
    expect(two.code).to.equal(2);
    expect(two.stderr).to.contain("holds 2 identities").and.to.contain(`${key}, ${other}`);
  });

  function set(path: string, value: string, file = ROSTER): void {
    const done = secrets(["set", file, path], { input: value });
    expect(done.code, done.stderr).to.equal(0);
    expect(done.stdout + done.stderr).not.to.contain(value);
  }

  describe("on the way to a node", () => {
    let server: SshServer;
    before(async () => {
      server = await startSshd();
    });
    after(() => server.stop());

    it("S-7 unlock an SSH key for the run, and reach steps and actions through an orchestration", async () => {
      addAlice();
      const { identityFile, port, hostKey, folder } = server;
      const [passphrase, word] = ["canary-passphrase-55", "canary-word-8822"];
      const key = join(project.path, "locked");
      execFileSync("cp", [identityFile, key]);
      execFileSync("ssh-keygen", ["-q", "-p", "-P", "", "-N", passphrase, "-f", key]);
      project.write({
        "project/roster/nodes.yaml": `defaults: { identityFile: ${key}, stateDir: ${folder}/state }
nodes:
  n1: { address: 127.0.0.1, port: ${port}, hostKeys: [${hostKey}], vars: {} }
`,
        "project/states/word.yaml": `params: { word: { type: secret, required: true } }
steps:
  - { id: word, file.managed: { path: ${folder}/word, content: "{{params.word}}", mode: "0600" } }
`,
        "project/orchestrate/words.yaml": `stages:
  - { id: tell, run: local.command, with: { command: [sh, -c, "cat >${folder}/local"], stdin: "{{nodes.n1.vars.local}}" } }
  - { id: word, on: n1, apply: [word], with: { word: x } }
`,
      });
      set("defaults.identityPassphrase", passphrase);
      set("nodes.n1.vars.local", word);
      set("stages.word.with.word", word, "orchestrate/words.yaml");
      const done = await run("orchestrate", "words", "--yes", "--verbose");
      expect(done.code, done.stdout + done.stderr).to.equal(0);
      expect(readFileSync(join(folder, "word"), "utf8")).to.equal(word);
      expect(readFileSync(join(folder, "local"), "utf8")).to.equal(word);
      expect(done.stdout + done.stderr).not.to.contain("canary-");
      expect(
        spawnSync("grep", ["-rlaF", "canary-", join(project.project, ".kcore")], { encoding: "utf8" }).stdout,
      ).to.equal("");
    });
  });

  it("set changes one line, and list names the recipients", () => {
    addAlice();
    const before = text(ROSTER);
    set("nodes.here.vars.token", "first-value-1");
    const once = text(ROSTER);
    expect(once.split("\n").filter((line) => !before.split("\n").includes(line))).to.have.length(1);
    set("nodes.here.vars.token", "other-value-2");
    expect(text(ROSTER).split("\n").length).to.equal(once.split("\n").length);
    expect(secrets(["show", ROSTER, "nodes.here.vars.token"]).stdout).to.equal("other-value-2");
    expect(JSON.parse(secrets(["list", "-o", "json"]).stdout)).to.deep.equal([
      { file: ROSTER, path: "nodes.here.vars.token", recipients: ["alice"], status: "in order" },
    ]);
    expect(statSync(identity("alice")).mode & 0o777).to.equal(0o600);
  });

  it("set refuses a place that a roster has not, and an empty value", () => {
    addAlice();
    const before = text(ROSTER);
    for (const [path, code] of [
      ["nodes.here.passwrd", "YAML_KEY_UNKNOWN"],
      ["nodes.here.roles", "ROSTER_EDIT"],
    ] as const) {
      const refused = secrets(["set", ROSTER, path], { input: "x" });
      expect([refused.code, /\[(\w+)\]/.exec(refused.stderr)?.[1]], path).to.deep.equal([2, code]);
    }
    const empty = secrets(["set", ROSTER, "nodes.here.vars.x"], { input: "\n" });
    expect(empty.stderr).to.contain("the value is empty; nothing was changed");
    expect(text(ROSTER)).to.equal(before);
  });

  it("rotate re-encrypts to new recipients, and warns of values that a removed one has read", () => {
    addAlice();
    set("nodes.here.vars.token", "first-value-1");
    const bob = recipient("bob");
    expect(secrets(["recipients", "add", "bob", bob]).stdout).to.contain("kcore secrets rotate");
    const show = (who: string): CommandEnd => secrets(["show", ROSTER, "nodes.here.vars.token"], { who });
    expect(show("bob").stderr).to.match(/nodes\.yaml:2:\d+ {2}the sealed value is not for the identities/);
    const stale = secrets(["check"], { who: "nobody" });
    expect([stale.code, stale.stderr.includes("not sealed to bob  [SECRET_STALE]")]).to.deep.equal([2, true]);
    expect(secrets(["rotate"], { who: "bob" }).code).to.equal(2);
    expect(secrets(["rotate"]).code).to.equal(0);
    expect(show("bob").stdout).to.equal("first-value-1");
    expect(secrets(["check"], { who: "nobody" }).code).to.equal(0);

    expect(secrets(["recipients", "remove", "alice"], { who: "bob" }).stdout).to.contain("alice still knows");
    const rotated = secrets(["rotate", "-o", "json"], { who: "bob" });
    expect(rotated.stderr).to.contain("1 value was sealed to a former recipient");
    expect(JSON.parse(rotated.stdout)).to.deep.equal([{ file: ROSTER, secrets: 1 }]);
    expect(show("alice").code).to.equal(2);
    expect(text("recipients.yaml")).to.match(/^# .*\nbob: "?age1\w+"?\n$/);
  });

  it("a value moved to another place is refused until rotate --moved confirms the move", async () => {
    addAlice();
    set("nodes.here.vars.token", "first-value-1");
    writeFileSync(join(project.project, ROSTER), text(ROSTER).replace("token:", "motd:"));
    const check = await run("roster", "check");
    expect([check.code, check.stderr.includes("[SECRET_MISPLACED]")]).to.deep.equal([2, true]);
    expect(secrets(["rotate"]).code).to.equal(2);
    const moved = secrets(["rotate", "--moved"]);
    expect(moved.code, moved.stderr).to.equal(0);
    expect((await run("roster", "check")).code).to.equal(0);
  });

  it("are opened by age, and values encrypted by age are opened here", () => {
    addAlice();
    const value = "for age: ä€ 'quoted' \"twice\"\n two lines ";
    set("nodes.here.vars.token", value);
    const base64 = /age:([A-Za-z0-9+/=]+)/.exec(text(ROSTER))?.[1] ?? "";
    const opened = execFileSync("age", ["-d", "-i", identity("alice")], { input: Buffer.from(base64, "base64") });
    expect(opened.toString()).to.equal(value);
    const key = /age1\w+/.exec(text("recipients.yaml"))?.[0] ?? "";
    const armor = execFileSync("age", ["-a", "-r", key], { input: "from age" }).toString();
    project.write({
      "project/roster/more.yaml": `groups:\n  g:\n    vars:\n      token: |\n${armor.replaceAll(/^(?=.)/gm, "        ")}`,
    });
    expect(secrets(["show", "roster/more.yaml", "groups.g.vars.token"]).stdout).to.equal("from age");
    expect(secrets(["check"]).stderr).to.contain("bound to no place");
    expect(secrets(["rotate"]).code).to.equal(0);
    expect(secrets(["check"]).code).to.equal(0);
    expect(secrets(["show", "roster/more.yaml", "groups.g.vars.token"]).stdout).to.equal("from age");
  });

  it("come from a file for --params, bound to that file", async () => {
    addAlice();
    project.write({
      "project/params/prod.json": '{ "who": "me" }\n',
      "project/states/p.yaml": `params: { key: { type: secret }, who: { type: string } }\nsteps:\n  - { id: f, file.managed: { path: ${project.path}/f, content: "{{params.key}} {{params.who}}" } }\n`,
    });
    set("key", "by-params-9", "params/prod.json");
    const done = await run("state", "apply", "p", "--on", "here", "--yes", "--params", "@params/prod.json");
    expect(done.code, done.stdout + done.stderr).to.equal(0);
    expect(readFileSync(join(project.path, "f"), "utf8")).to.equal("by-params-9 me");
    project.write({ "project/params/test.json": text("params/prod.json") });
    const refused = await run("state", "apply", "p", "--on", "here", "--params", "@params/test.json");
    expect([refused.code, refused.stderr.includes("params/test.json:1:")]).to.deep.equal([2, true]);
    expect(refused.stderr).to.contain("SECRET_MISPLACED");
  });

  describe("in an editor", () => {
    /** An editor that prints the file it gets, and then runs this shell text on it as "$1". */
    const editor = (does: string): Record<string, string> => {
      const file = join(project.path, "editor");
      writeFileSync(
        file,
        `#!/bin/sh\ncp "$1" ${project.path}/seen; stat -c '%a' "$1" "$(dirname "$1")" >${project.path}/modes; dirname "$1" >${project.path}/where\n${does}\n`,
        { mode: 0o755 },
      );
      return { EDITOR: file, VISUAL: "" };
    };
    beforeEach(() => {
      addAlice();
      set("nodes.here.vars.token", "first-value-1");
      set("nodes.gone.vars.token", "kept-value-2");
    });

    it("edit re-encrypts only changed values, and leaves every other line as it is", () => {
      const [, here = "", gone = ""] = text(ROSTER).split("\n");
      const env = editor(
        `sed -i -e 's/first-value-1/new-value-3/' -e 's/roles: .worker.,* *vars/&/' -e '$ a\\  # added' "$1"`,
      );
      const done = secrets(["edit", ROSTER], { env });
      expect(done.code, done.stderr).to.equal(0);
      expect(done.stdout).to.contain("1 of its 2 secrets is sealed anew");
      const seen = readFileSync(join(project.path, "seen"), "utf8");
      expect(seen).to.contain('token: "secret:first-value-1"').and.to.contain('token: "secret:kept-value-2"');
      expect(readFileSync(join(project.path, "modes"), "utf8")).to.equal("600\n700\n");
      expect(existsSync(readFileSync(join(project.path, "where"), "utf8").trim())).to.equal(false);
      const [, changed, same, ...rest] = text(ROSTER).split("\n");
      expect(changed).not.to.equal(here);
      expect(same).to.equal(gone);
      expect(rest.join("\n")).to.contain("# added");
      expect(secrets(["show", ROSTER, "nodes.here.vars.token"]).stdout).to.equal("new-value-3");
      expect(secrets(["edit", ROSTER], { env: editor(":") }).stdout).to.equal("nothing was changed\n");
    });

    const refused: readonly (readonly [string, string, RegExp])[] = [
      [
        "a mark that is gone",
        `sed -i 's/secret:first-value-1/first-value-1/' "$1"`,
        /would stand in .* as plain text {2}\[SECRET_PLAIN\]/,
      ],
      ["no YAML", `echo '}' >>"$1"`, /YAML_SYNTAX/],
      ["an editor that fails", "exit 3", /the editor ended with 3; nothing was changed/],
    ];
    for (const [what, does, wanted] of refused)
      it(`edit refuses ${what}, leaving the file unchanged and no copy behind`, () => {
        const before = text(ROSTER);
        const done = secrets(["edit", ROSTER], { env: editor(does) });
        expect(done.code).to.equal(2);
        expect(done.stderr).to.match(wanted).and.not.to.contain("kept-value-2");
        expect(done.stderr).not.to.contain("first-value-1");
        expect(text(ROSTER)).to.equal(before);
        expect(existsSync(readFileSync(join(project.path, "where"), "utf8").trim())).to.equal(false);
      });

    it("edit leaves no decrypted copy after Ctrl-C", async () => {
      const { EDITOR: name = "" } = editor("sleep 60");
      const env = { EDITOR: name, XDG_CONFIG_HOME: join(project.path, "alice") };
      await project.atTerminal(async (shell) => {
        await shell.enter(`clear; '${kcoreProgram}' secrets edit ${ROSTER}; echo "ended: $?"`);
        const where = join(project.path, "where");
        await eventually(() => existsSync(where) && readFileSync(where, "utf8") !== "");
        const folder = readFileSync(where, "utf8").trim();
        expect(readdirSync(folder)).to.deep.equal(["nodes.yaml"]);
        await shell.press("C-c");
        await shell.shows(/ended: 130/);
        expect(existsSync(folder)).to.equal(false);
      }, env);
    });
  });

  it("load no encryption code at start: the bundle keeps it in a program of its own", function () {
    if ("KCORE_SOURCE" in kcoreEnvironment) this.skip();
    const program = (name: string): string => readFileSync(join(kcoreProgram, "../../dist", `${name}.program`), "utf8");
    const isIn = (name: string): boolean => program(name).includes("age-encryption.org/v1/X25519");
    expect(["start", "run-main", "age"].filter(isIn)).to.deep.equal(["age"]);
  });

  it("archives are told by their kind in the bundle, too, before they are opened", async () => {
    project.write({ "backup.age": await lock("{}", "one", 10), phrase: "another\n" });
    chmodSync(join(project.path, "phrase"), 0o600);
    const flags = ["--verify", join(project.path, "backup.age"), "--passphrase-file", join(project.path, "phrase")];
    expect((await run("cluster", "backup", ...flags)).stderr).to.contain("PKI_PASSPHRASE_WRONG");
  });

  it("are asked for at a terminal without echo, as is the passphrase of an identity, in a run too", async () => {
    mkdirSync(join(project.path, "alice"));
    project.write({
      "project/states/f.yaml": `steps:\n  - { id: f, file.managed: { path: ${project.path}/f, content: "{{vars.token}}" } }\n`,
    });
    await project.atTerminal(
      async (shell) => {
        const enter = (words: string): Promise<void> =>
          shell.enter(`clear; '${kcoreProgram}' ${words}; echo "ended: $?"`);
        await enter("secrets keygen --passphrase");
        await shell.shows(/^New passphrase of the identity:/m);
        await shell.enter("open sesame");
        await shell.shows(/^Once more:/m);
        await shell.enter("open sesame");
        const made = await shell.shows(/ended: 0/);
        expect(readFileSync(identity("alice"), "utf8")).to.contain("BEGIN AGE ENCRYPTED FILE");
        await enter(`secrets recipients add alice ${/age1\w+/.exec(made)?.[0] ?? ""}`);
        await shell.shows(/ended: 0/);
        await enter(`secrets set ${ROSTER} nodes.here.vars.token`);
        await shell.shows(/^Value of nodes\.here\.vars\.token:/m);
        await shell.enter("typed-unseen-5");
        expect(await shell.shows(/ended: 0/)).not.to.contain("typed-unseen");
        await enter("state apply f --on here --yes --output plain");
        await shell.shows(/^Passphrase of the identity/m);
        await shell.enter("open sesame");
        const screen = await shell.shows(/ended: 0/);
        expect(screen).not.to.contain("typed-unseen").and.not.to.contain("sesame");
        expect(readFileSync(join(project.path, "f"), "utf8")).to.equal("typed-unseen-5");
      },
      { XDG_CONFIG_HOME: join(project.path, "alice") },
    );
  });
});
