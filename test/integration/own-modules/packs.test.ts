import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { TestProject } from "#support/kcore.ts";

const pack: Readonly<Record<string, string>> = {
  "pack.yaml": "name: greet\ndescription: Greetings\n",
  "states/hello.yaml": `params:
  folder: { type: string, required: true }
steps:
  - id: page
    file.managed: { path: "{{params.folder}}/page", template: greet/page.hbs, vars: { name: you } }
  - id: line
    greet.line: { path: "{{params.folder}}/line" }
  - id: bytes
    file.managed: { path: "{{params.folder}}/bytes", source: packs/greet/files/bytes }
`,
  "states/all.yaml":
    "params:\n  folder: { type: string, required: true }\nsteps:\n  - include: greet/hello\n    with: { folder: '{{params.folder}}' }\n",
  "templates/page.hbs": "hello {{name}}\n",
  "files/bytes": "bytes\n",
  "modules/greet.line.yaml": `summary: Keeps an empty file.
args: { required: [path], properties: { path: { type: string, description: The file. } } }
want: { there: "yes" }
probe: if [ -e {{args.path}} ]; then fact there yes; else fact there no; fi
apply: ": >{{args.path}}"
`,
};

describe("packs", () => {
  let project: TestProject;
  let repository: string;
  let folder: string;

  const gitIdentity = ["-c", "user.name=t", "-c", "user.email=t@example.net"];
  const git = (...words: readonly string[]): string =>
    execFileSync("git", ["-C", repository, ...gitIdentity, ...words], { encoding: "utf8" }).trim();

  function commit(files: Readonly<Record<string, string>>, tag: string): string {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(repository, "web", name)), { recursive: true });
      writeFileSync(join(repository, "web", name), text);
    }
    git("add", "-A");
    git("commit", "-q", "-m", tag);
    git("tag", tag);
    return git("rev-parse", "HEAD");
  }

  beforeEach(() => {
    project = new TestProject();
    repository = join(project.path, "packs.git");
    folder = join(project.path, "target");
    mkdirSync(repository);
    mkdirSync(folder);
    git("init", "-q");
    commit(pack, "v1");
  });
  afterEach(() => project.remove());

  const add = (...more: readonly string[]) => project.kcore("pack", "add", repository, "--path", "web", ...more);
  const apply = (state: string) =>
    project.kcore("state", "apply", state, "--on", "here", "--set", `folder=${folder}`, "--output", "plain");

  it("verify in a clone that converts line ends; without packs/.gitattributes the error names the cause", async () => {
    project.write({ "project/.gitattributes": "* text=auto eol=crlf\n" });
    await add();
    const clone = join(project.path, "clone");
    const inProject = (...words: readonly string[]): string =>
      execFileSync("git", [...gitIdentity, ...words], {
        cwd: project.project,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      });
    inProject("init", "-q");
    inProject("add", "-A");
    inProject("commit", "-q", "-m", "all");
    inProject("clone", "-q", ".", clone);
    expect(readFileSync(join(clone, "packs.yaml"), "utf8"), "git does convert").to.contain("\r\n");
    const verified = await project.kcore("pack", "verify", "--project", clone);
    expect(verified.code, verified.stderr).to.equal(0);

    inProject("rm", "-q", "packs/.gitattributes");
    inProject("commit", "-q", "-m", "without");
    rmSync(clone, { recursive: true });
    inProject("clone", "-q", ".", clone);
    const { code, stderr } = await project.kcore("pack", "verify", "--project", clone);
    expect(code).to.equal(2);
    expect(stderr).to.contain("PACK_CHANGED").and.contain("only in its line ends").and.contain("packs/.gitattributes");
  });

  it("keep an existing packs/.gitattributes, and add their line once", async () => {
    project.write({ "project/packs/.gitattributes": "*.bin -diff" });
    await add();
    await project.kcore("pack", "update");
    expect(readFileSync(join(project.project, "packs/.gitattributes"), "utf8")).to.match(
      /^\*\.bin -diff\n# .*\n\* -text .*\n$/,
    );
  });

  it("clean up after a killed command, and lose no pin when several are added at once", async () => {
    project.write({ "project/packs/.new-abc123/pack/pack.yaml": "name: half\n" });
    const names = ["one", "two", "three", "four"];
    for (const name of names) project.write({ [`${name}/pack.yaml`]: `name: ${name}\n` });
    const ended = await Promise.all(names.map((name) => project.kcore("pack", "add", `../${name}`)));
    for (const { code, stderr } of ended) expect(code, stderr).to.equal(0);
    const listed = JSON.parse((await project.kcore("pack", "list", "-o", "json")).stdout) as { name: string }[];
    expect(listed.map(({ name }) => name)).to.have.members(names);
    expect(readdirSync(join(project.project, "packs")).toSorted()).to.deep.equal([
      ".gitattributes",
      ...names.toSorted(),
    ]);
  });

  it("resolve a relative source from the project, and the error says so", async () => {
    const { code, stderr } = await project.call(["pack", "add", "packs.git/web", "--project", project.project]);
    expect(code).to.equal(2);
    const missing = `there is no folder ${join(project.project, "packs.git/web")}`;
    expect(stderr).to.contain("PACK_UNREACHABLE").and.contain(missing).and.contain("from the project");
    expect((await project.kcore("pack", "add", "--help")).stdout.replaceAll(/\s+/g, " ")).to.contain(
      "from the project's folder",
    );
  });

  it("bring states, templates, modules and files under their name, pinned by revision and hash", async () => {
    const added = await add("--ref", "v1", "-o", "json");
    expect(added.code, added.stderr).to.equal(0);
    const [pin] = JSON.parse(added.stdout) as { name: string; revision: string; hash: string }[];
    expect([pin?.name, pin?.revision]).to.deep.equal(["greet", git("rev-parse", "v1")]);
    expect(readFileSync(join(project.project, "packs.yaml"), "utf8")).to.contain(pin?.hash);
    expect((await project.kcore("state", "list")).stdout).to.match(/^greet\/hello +pack/m);
    const applied = await apply("greet/all");
    expect(applied.code, applied.stdout + applied.stderr).to.equal(0);
    expect(readFileSync(join(folder, "page"), "utf8")).to.equal("hello you\n");
    expect(readFileSync(join(folder, "bytes"), "utf8")).to.equal("bytes\n");
    expect((await apply("greet/all")).stdout).to.contain("changed=0");
    expect((await project.kcore("pack", "verify")).code).to.equal(0);
  });

  it("are refused and not overwritten after a change by hand", async () => {
    await add("--ref", "v1");
    commit({ "templates/page.hbs": "HELLO {{name}}\n" }, "v2");
    const page = join(project.project, "packs/greet/templates/page.hbs");
    appendFileSync(page, "by hand\n");
    for (const words of [["verify"], ["update"], ["update", "greet", "--ref", "v2"], ["remove", "greet"]]) {
      const { code, stderr } = await project.kcore("pack", ...words);
      expect([code, stderr.includes("PACK_CHANGED")], stderr).to.deep.equal([2, true]);
    }
    expect(readFileSync(page, "utf8")).to.equal("hello {{name}}\nby hand\n");
  });

  it("are updated to another revision and removed on request", async () => {
    await add("--ref", "v1");
    const second = commit({ "templates/page.hbs": "HELLO {{name}}\n", "files/more": "x" }, "v2");
    expect((await project.kcore("pack", "update")).stdout).to.contain(git("rev-parse", "v1").slice(0, 12));
    const { stdout, stderr } = await project.kcore("pack", "update", "greet", "--ref", "v2");
    expect(stdout, stderr).to.contain(second.slice(0, 12));
    expect(readFileSync(join(project.project, "packs/greet/templates/page.hbs"), "utf8")).to.equal("HELLO {{name}}\n");
    expect((await project.kcore("pack", "remove", "greet")).code).to.equal(0);
    expect(existsSync(join(project.project, "packs/greet"))).to.equal(false);
    expect((await project.kcore("pack", "list", "-o", "json")).stdout).to.equal("[]\n");
  });

  it("are added from a folder, too", async () => {
    const { code, stdout } = await project.kcore("pack", "add", join("..", "packs.git/web"));
    expect([code, stdout.includes("sha256:")]).to.deep.equal([0, true]);
    expect((await add()).stderr).to.contain("has a pack “greet” already");
  });

  it("are refused with a link, without a name, or when missing; the project stays unchanged", async () => {
    symlinkSync("/etc/passwd", join(repository, "web/files/link"));
    symlinkSync("/etc", join(repository, "out"));
    git("add", "-A");
    git("commit", "-q", "-m", "link");
    for (const [words, code] of [
      [[repository, "--path", "web"], "PACK_INVALID"],
      [[repository], "PACK_INVALID"],
      [[repository, "--path", "../../etc"], "PACK_INVALID"],
      [[repository, "--path", "out"], "PACK_INVALID"],
      [[repository, "--path", "web", "--ref", "nothing"], "PACK_UNREACHABLE"],
      [["file:///no/such/repository"], "PACK_UNREACHABLE"],
    ] as const) {
      const refused = await project.kcore("pack", "add", ...words);
      expect([refused.code, refused.stderr.includes(code)], refused.stderr).to.deep.equal([2, true]);
    }
    expect(existsSync(join(project.project, "packs")) || existsSync(join(project.project, "packs.yaml"))).to.equal(
      false,
    );
  });

  it("are restored or removed when their folder is missing; an update killed before its pin is completed", async () => {
    await add("--ref", "v1");
    const place = join(project.project, "packs/greet");
    rmSync(place, { recursive: true });
    expect((await project.kcore("pack", "verify")).stderr).to.contain("packs/greet is not there");
    const again = await project.kcore("pack", "update");
    expect(again.code, again.stderr).to.equal(0);
    const pins = readFileSync(join(project.project, "packs.yaml"), "utf8");
    commit({ "templates/page.hbs": "HELLO {{name}}\n" }, "v2");
    await project.kcore("pack", "update", "greet", "--ref", "v2");
    writeFileSync(join(project.project, "packs.yaml"), pins);
    const taken = await project.kcore("pack", "update", "greet", "--ref", "v2");
    expect(taken.code, taken.stderr).to.equal(0);
    expect((await project.kcore("pack", "verify")).code).to.equal(0);
    rmSync(place, { recursive: true });
    const removed = await project.kcore("pack", "remove", "greet");
    expect(removed.code, removed.stderr).to.equal(0);
  });

  it("do not replace an existing folder", async () => {
    project.write({ "project/packs/greet/notes.txt": "mine\n" });
    const { code, stderr } = await add();
    expect([code, stderr.includes("packs/greet")], stderr).to.deep.equal([2, true]);
    expect(readFileSync(join(project.project, "packs/greet/notes.txt"), "utf8")).to.equal("mine\n");
  });

  it("are fetched without inherited git variables, and not from a URL with a password", async () => {
    const around = join(project.path, "around");
    execFileSync("git", ["init", "-q", around]);
    execFileSync("git", ["-C", around, ...gitIdentity, "commit", "-q", "--allow-empty", "-m", "x"]);
    const head = readFileSync(join(around, ".git/HEAD"), "utf8");
    const { ended } = project.start(["pack", "add", repository, "--path", "web", "--ref", "v1"], {
      GIT_DIR: join(around, ".git"),
      GIT_INDEX_FILE: join(around, ".git/index"),
    });
    const { code, stderr } = await ended;
    expect(readFileSync(join(around, ".git/HEAD"), "utf8")).to.equal(head);
    expect(existsSync(join(around, ".git/FETCH_HEAD"))).to.equal(false);
    expect(code, stderr).to.equal(0);
    const environmentFile = join(project.path, "said");
    await project.start(["pack", "add", "ssh://127.0.0.1/x"], { GIT_SSH_COMMAND: `env >${environmentFile}; false` })
      .ended;
    expect(readFileSync(environmentFile, "utf8")).to.match(/^SSH_ASKPASS_REQUIRE=force$/m);
    const refused = await project.kcore("pack", "add", "https://me:hunter2@127.0.0.1:1/x.git");
    expect(refused.stderr).to.contain("SECRET_LITERAL").and.not.contain("hunter2");
  });

  it("do not replace a module of the project", async () => {
    commit({ "modules/aaa.motd.yaml": pack["modules/greet.line.yaml"] ?? "" }, "v4");
    await add("--ref", "v4");
    const own = (pack["modules/greet.line.yaml"] ?? "").replace("an empty file", "what the project says");
    project.write({ "project/modules/aaa.motd.yaml": own, "project/modules/greet.line.yaml": own });
    for (const name of ["aaa.motd", "greet.line"]) {
      const { stdout, stderr } = await project.kcore("modules", name);
      expect(stdout, stderr).to.contain("what the project says");
    }
  });

  it("provide only modules that begin with the pack's name", async () => {
    const odd = "params: { folder: { type: string } }\nsteps:\n  - id: a\n    site.motd: { path: /nowhere/x }\n";
    commit({ "modules/site.motd.yaml": pack["modules/greet.line.yaml"] ?? "", "states/odd.yaml": odd }, "v3");
    await add("--ref", "v3");
    const { code, stderr } = await apply("greet/odd");
    expect(
      [code, stderr.includes("packs/greet/modules/site.motd.yaml cannot be a module's file")],
      stderr,
    ).to.deep.equal([2, true]);
  });
});
