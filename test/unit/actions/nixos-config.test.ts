import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { nixosConfig } from "#actions/nixos-config.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { actionContext } from "#support/action-context.ts";
import { liveFacts } from "#support/nixos.ts";
import { makeProject } from "#support/project.ts";
import { nodeEntry } from "#support/runs.ts";
import { problemsOf } from "#support/steps.ts";
import { folderOfEachTest, type TempDir } from "#support/temp-dir.ts";

const golden = join(import.meta.dirname, "../../fixtures/nixos");
const node = nodeEntry("n1.example.org", {
  user: "ops",
  roles: ["controller"],
  disks: [
    { serial: "S3Z8NB0K", use: "os" },
    { serial: "DATA0", use: "volumes" },
    { serial: "DATA1", use: "volumes" },
  ],
});

describe("nixos.config", () => {
  const elsewhere = folderOfEachTest("other");
  let project: TempDir;
  beforeEach(async () => {
    project = await makeProject({
      "templates/kcore-controller.service.hbs":
        "[Service]\nExecStart=/bin/kcore controller\n[Install]\nWantedBy=multi-user.target\n",
      "templates/kcore-updater.service.hbs": "[Service]\nExecStart=/bin/kcore updater\n",
      "templates/kcore-updater.path.hbs":
        "[Path]\nPathExists={{node.stateDir}}/updates\n[Install]\nWantedBy=multi-user.target\n",
    });
    writeFileSync(
      join(project.path, "templates/kcore-node-agent.service.hbs"),
      "[Service]\nExecStart=/bin/kcore agent\nReadWritePaths={{node.stateDir}}\n[Install]\nWantedBy=multi-user.target\n",
    );
  });
  afterEach(() => project.remove());

  const context = (fields: Partial<NodeEntry> = {}) => {
    const entry = { ...node, ...fields };
    return actionContext({ project: project.path, node: entry, nodes: new Map([[entry.name, entry]]) });
  };
  const configure = async (
    live: Readonly<Record<string, string>> = liveFacts,
    mode: "run" | "plan" = "run",
    given = context(),
  ) => {
    const result = await nixosConfig[mode](nixosConfig.args.parse({ live }), given);
    if (result === "unknown") throw new Error("the result is unknown");
    const { files } = result.outputs["flake"] as { files: readonly { path: string; file: string; sha256: string }[] };
    return { changed: result.changed, files, notes: given.notes };
  };
  const read = (path: string): string => readFileSync(join(project.path, "nixos", path), "utf8");
  const git = (...words: readonly string[]): string =>
    execFileSync("git", ["-C", project.path, "-c", "user.name=t", "-c", "user.email=t@t", ...words], {
      encoding: "utf8",
    });

  const makeCleanRepository = (): void => {
    git("init", "-q", "-b", "main");
    git("config", "user.name", "t");
    git("config", "user.email", "t@t");
    git("add", "-A");
    git("commit", "-q", "-m", "first");
  };

  it("writes a flake and the machine's files from the live system's facts and the roster", async () => {
    const { changed, files } = await configure();
    expect(changed).to.equal(true);
    expect(files.map(({ path }) => path)).to.deep.equal([
      "flake.nix",
      ...["configuration", "disko", "hardware-configuration", "kcore"].map(
        (name) => `hosts/n1.example.org/${name}.nix`,
      ),
    ]);
    for (const { path } of files) {
      const wanted = join(golden, path);
      if (process.env["KCORE_UPDATE"] !== undefined) {
        mkdirSync(join(wanted, ".."), { recursive: true });
        writeFileSync(wanted, read(path));
      }
      expect(read(path), path).to.equal(readFileSync(wanted, "utf8"));
    }
  });

  it("changes nothing when run again, and nothing in a dry run, which notes the files it would write", async () => {
    const planned = await configure(liveFacts, "plan");
    expect(existsSync(join(project.path, "nixos"))).to.equal(false);
    expect(planned.notes.join("\n")).to.contain(
      "would write nixos/flake.nix, nixos/hosts/n1.example.org/configuration.nix",
    );
    expect((await configure()).files).to.deep.equal(planned.files);
    const again = await configure();
    expect([again.changed, again.notes]).to.deep.equal([false, []]);
  });

  it("keeps a file that an operator edited, includes the operator's own files, and rewrites the others", async () => {
    await configure();
    const file = "hosts/n1.example.org/configuration.nix";
    writeFileSync(join(project.path, "nixos", file), `${read(file)}# mine\n`);
    writeFileSync(join(project.path, "nixos", "common.nix"), "{ }\n");
    writeFileSync(join(project.path, "nixos", ".hidden"), "secret\n");
    const { notes, files } = await configure({ ...liveFacts, consoles: "", device: "/dev/disk/by-id/ata-OTHER" });
    expect(notes).to.deep.equal([
      `nixos/${file} is kept as it was changed by hand`,
      "wrote nixos/hosts/n1.example.org/disko.nix",
    ]);
    expect(read(file)).to.match(/# mine\n$/);
    expect(files.map(({ path }) => path))
      .to.include("common.nix")
      .and.not.to.include(".hidden");
  });

  it("keeps configuration.nix of a machine that runs NixOS from its disk, and warns when kcore.nix changed", async () => {
    await configure();
    const before = read("hosts/n1.example.org/configuration.nix");
    const warnings: string[] = [];
    const entry = { ...node, roles: ["worker"] };
    const given = { ...context(entry), warn: (text: string) => void warnings.push(text) };
    await configure({ live: "told", running: "yes" }, "run", given);
    expect(read("hosts/n1.example.org/configuration.nix")).to.equal(before);
    expect(read("hosts/n1.example.org/kcore.nix")).not.to.contain("kcore-controller");
    expect(warnings).to.deep.equal([
      "nixos/hosts/n1.example.org/kcore.nix changed, and n1.example.org runs NixOS already: nixos-rebuild switch --flake nixos#n1.example.org",
    ]);
  });

  it("includes no files of another machine's folder", async () => {
    const other = nodeEntry("n2", { disks: [{ serial: "B", use: "os" }] });
    const nodes = new Map([node, other].map((entry) => [entry.name, entry]));
    await configure(liveFacts, "run", { ...context(), nodes });
    const { files } = await configure(liveFacts, "run", { ...context(other), node: other, nodes });
    expect(files.some(({ path }) => path.startsWith("hosts/n1"))).to.equal(false);
    expect(files.some(({ path }) => path === "hosts/n2/kcore.nix")).to.equal(true);
  });

  it("commits in a clean repository, and only stages beside other uncommitted changes", async () => {
    makeCleanRepository();
    const { notes } = await configure();
    expect(notes.at(-1)).to.equal("committed as “nixos: the configuration of n1.example.org”");
    expect(git("status", "--porcelain")).to.equal("");
    writeFileSync(join(project.path, "roster/new.yaml"), "nodes: {}\n");
    const again = await configure({ ...liveFacts, device: "/dev/disk/by-id/ata-OTHER" });
    expect(again.notes.at(-1)).to.contain("staged, not committed");
    expect(git("status", "--porcelain").split("\n").filter(Boolean)).to.deep.equal([
      "M  nixos/hosts/n1.example.org/configuration.nix",
      "M  nixos/hosts/n1.example.org/disko.nix",
      "?? roster/",
    ]);
  });

  it("keeps the release in flake.nix when another machine is installed from an older installer", async () => {
    await configure();
    const flake = read("flake.nix");
    const other = nodeEntry("n2", { disks: [{ serial: "B", use: "os" }] });
    for (const mode of ["plan", "run"] as const) {
      const { files, notes } = await configure({ ...liveFacts, release: "23.11" }, mode, {
        ...context(other),
        node: other,
      });
      expect(files.some(({ path }) => path === "flake.nix")).to.equal(true);
      expect(notes.join("\n")).not.to.contain("flake.nix");
    }
    expect(read("flake.nix")).to.equal(flake);
  });

  it("commits in the project's own repository, also if GIT_DIR names another one", async () => {
    execFileSync("git", ["init", "-q", "-b", "main", elsewhere()]);
    makeCleanRepository();
    process.env["GIT_DIR"] = elsewhere(".git");
    try {
      expect((await configure()).notes.at(-1)).to.contain("committed as");
      expect(existsSync(elsewhere(".git/index"))).to.equal(false);
    } finally {
      delete process.env["GIT_DIR"];
    }
    expect(git("status", "--porcelain")).to.equal("");
  });

  it("only stages if a hook refuses the commit or commits must be signed", async () => {
    makeCleanRepository();
    const hook = join(project.path, ".git/hooks/pre-commit");
    mkdirSync(join(hook, ".."), { recursive: true });
    writeFileSync(hook, "#!/bin/sh\nexit 1\n");
    chmodSync(hook, 0o755);
    expect((await configure()).notes.at(-1)).to.contain("staged, not committed");
    rmSync(hook);
    git("commit", "-q", "-m", "mine");
    git("config", "commit.gpgSign", "yes");
    const asked = join(project.path, ".git/asked");
    const program = `#!/bin/sh\ntouch ${asked}\nexit 1\n`;
    writeFileSync(join(project.path, ".git/sign"), program);
    chmodSync(join(project.path, ".git/sign"), 0o755);
    git("config", "gpg.program", join(project.path, ".git/sign"));
    const { notes } = await configure({ ...liveFacts, device: "/dev/disk/by-id/ata-OTHER" });
    expect(notes.at(-1)).to.contain("staged, not committed");
    expect(existsSync(asked)).to.equal(false);
  });

  it("refuses a roster entry that NixOS cannot express before it writes a file", async () => {
    for (const [fields, message] of [
      [{ vars: { encryptDisks: true } }, /encrypted data disks/],
      [{ vars: { storageBackend: "zfs" } }, /a ZFS pool of data disks/],
      [{ disks: [] }, /no disk of it has use: os/],
      [{ name: "a..b" }, /its name cannot be a host's name/],
    ] as const) {
      const [problem] = await problemsOf(() => configure(liveFacts, "run", context(fields)));
      expect([problem?.code, problem?.message.match(message)?.length]).to.deep.equal(["NIXOS_UNSUITED", 1]);
      expect(existsSync(join(project.path, "nixos"))).to.equal(false);
    }
  });
});
