import { homedir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { Command } from "commander";
import { addNodeInstall, requestFrom } from "#cli/install/install-command.ts";
import { planEntry } from "#cli/install/entry.ts";
import { checkInstaller, deployRequest, type InstallFlags } from "#cli/install/install-node.ts";
import { findMachine, usualName, type Machine } from "#cli/roster/find-machine.ts";
import { planInstall } from "#cli/install/request.ts";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { casesOf } from "#support/cases/read.ts";
import { nodeEntry } from "#support/runs.ts";
import { viewFromFlags } from "#cli/terminal/choose-view.ts";
import { KcoreError } from "#errors/problem.ts";
import { problemsIn } from "#support/problems.ts";
import { inventoryOf, type DescribedDevice } from "#support/disk-inventory.ts";
import { makeProject } from "#support/project.ts";

const device = (name: string, changes: Partial<DescribedDevice> = {}): DescribedDevice => ({
  name,
  serial: `SERIAL-${name}`,
  ...changes,
});
const devices = [
  device("sda"),
  device("sdb"),
  device("sdc", { serial: "", wwn: "0x5" }),
  device("sdd", { serial: "" }),
];
const inventory = inventoryOf(devices);
const key = { type: "ssh-ed25519", key: "AAAA", fingerprint: "SHA256:x" };
const id = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";
const machine = (changes: Partial<Machine> = {}): Machine => ({
  project: "/nowhere",
  host: "192.0.2.13",
  roster: { nodes: new Map(), jumps: new Map(), positions: new Map(), files: [] },
  entry: nodeEntry("x", { address: "192.0.2.13", port: 22 }),
  isInRoster: false,
  note: "",
  ...changes,
});

type Flags = InstallFlags & Parameters<typeof requestFrom>[0];

function install(): Command {
  const node = new Command("node").exitOverride();
  addNodeInstall(node);
  return node.commands[0] as Command;
}

function flagsOf(...words: readonly string[]): Flags {
  const command = install()
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  let found: Flags | undefined;
  command.action((flags: Flags) => {
    found = flags;
  });
  command.parse([...words], { from: "user" });
  return found as Flags;
}

/** The results of a command line: the roster's file and the requested run; or the problems. */
function outcomeOf(...words: readonly string[]): unknown {
  const flags = flagsOf(...words);
  const request = requestFrom(flags);
  try {
    const entry = planEntry(machine({ host: request.node.split(":")[0] ?? "" }), planInstall(request), {
      key,
      inventory,
      newId: () => id,
    });
    const { command: _, ...run } = deployRequest(flags);
    const roster = parsePlainYaml(entry.edit({ file: entry.file, text: "" })) as object;
    const { hostKey, insecure } = request;
    const { style, noStay } = viewFromFlags({ ...flags, output: "plain" });
    return {
      roster,
      run,
      hostKey,
      insecure,
      passphraseFile: flags.passphraseFile,
      askPassword: flags.askPassword,
      passwordFile: flags.passwordFile,
      output: flags.output,
      style,
      noStay,
    };
  } catch (error) {
    return problemsIn(() => {
      throw error;
    });
  }
}

const base = "--node 192.0.2.13:9091 --os-disk /dev/sda --os-installed --join-controller 192.0.2.11:9090".split(" ");
const entryOf = (...words: readonly string[]): Record<string, unknown> => {
  const { roster } = outcomeOf(...words) as { roster: { nodes: Record<string, Record<string, unknown>> } };
  return Object.values(roster.nodes)[0] ?? {};
};

describe("kcore node install", () => {
  it("logs in with the key of --identity-file, for a new machine and for one in the roster", async () => {
    const project = await makeProject({
      "roster/a.yaml": "nodes: { c: { address: 192.0.2.13, identityFile: old } }\n",
    });
    try {
      for (const node of ["192.0.2.13:9091", "192.0.2.14:9091"]) {
        const [plain, own, home] = [undefined, "keys/ci", "~/ci"].map(
          (file) => findMachine(node, project.path, file).entry.identityFile,
        );
        expect(plain).to.equal(node.includes("13") ? join(project.path, "old") : undefined);
        expect(own).to.equal(join(project.path, "keys/ci"));
        expect(home).to.equal(join(homedir(), "ci"));
      }
    } finally {
      await project.remove();
    }
  });

  const { effects, together } = casesOf<{
    readonly effects: Readonly<Record<string, readonly [words: string, effect: string]>>;
    readonly together: Readonly<Record<string, { fresh?: boolean; flags: string; tells: readonly string[] }>>;
  }>("install-flags.yaml");
  const fresh = base.filter((word) => word !== "--os-installed");
  for (const [flag, [words, effect]] of Object.entries(effects))
    it(`${flag} has an effect`, () => {
      expect(JSON.stringify(outcomeOf(...base, ...words.split(" ")))).to.match(new RegExp(effect));
      expect(JSON.stringify(outcomeOf(...base))).not.to.match(new RegExp(effect));
    });
  for (const [what, { fresh: isFresh = false, flags, tells }] of Object.entries(together))
    it(what, () => {
      const told = JSON.stringify(outcomeOf(...(isFresh ? fresh : base), ...flags.split(" ").filter(Boolean)));
      for (const text of tells) expect(told).to.contain(text);
    });

  it("accepts a system of --os that has an installer, and not together with --os-installed", async () => {
    expect(problemsIn(() => planInstall(requestFrom(flagsOf(...base, "--os", "nixos"))))[0]).to.contain(
      "--os names a system to install, and --os-installed says that there is one [USAGE]",
    );
    const project = await makeProject({ "states/system/haiku.yaml": "steps: []\n" });
    try {
      const check = (os: string): void =>
        checkInstaller(planInstall(requestFrom(flagsOf(...fresh, "--os", os))), project.path);
      for (const os of ["debian", "nixos", "haiku"]) check(os);
      expect(problemsIn(() => check("nixso"))).to.deep.equal([
        "nothing installs “nixso”: there is no states/system/nixso.yaml in this project, and none is shipped [USAGE] | did you mean “nixos”?",
      ]);
    } finally {
      await project.remove();
    }
  });

  it("refuses a call without a machine", () =>
    expect(problemsIn(() => findMachine(requestFrom({}).node, undefined))[0]).to.contain(
      "no machine is named [USAGE]",
    ));

  it("has no flag without a case in install-flags.yaml or here", () => {
    const named = [...Object.keys(effects), "--os-installed", "--os", "--project", "--debug"];
    expect(
      install()
        .options.map(({ long }) => long)
        .filter((flag) => !named.includes(flag ?? "")),
    ).to.deep.equal([]);
  });

  it("reports all problems of its flags at once, such as no controller to run or join", () => {
    const problems = outcomeOf("--node", "c", "--os-disk", "sda", "--data-disk", "/dev/x y") as string[];
    expect(problems).to.have.length(3);
    expect(problems.join("\n"))
      .to.contain("no controller to belong to")
      .and.to.contain("“sda” is not the path of a disk");
  });

  it("installs no system with --os-installed", () =>
    expect(JSON.stringify(outcomeOf(...base))).not.to.contain("installOs"));

  it("refuses a name that ZFS allows no pool", () => {
    const zfs = [...base, "--data-disk", "/dev/sdb", "--storage-backend", "zfs"];
    for (const name of ["-x", "mirror1", "raidz", "c0", "log"])
      expect(JSON.stringify(outcomeOf(...zfs, "--zfs-pool-name", name)), name).to.contain("cannot be a pool's name");
  });

  it("names a disk without a serial number by its WWN", () =>
    expect(entryOf(...base, "--data-disk", "/dev/sdc")["disks"]).to.deep.include({ wwn: "0x5", use: "volumes" }));

  it("records the OS disk by path if the machine has no such disk yet", () => {
    const entry = entryOf(...base, "--os-disk", "/dev/vda");
    expect(entry).not.to.have.property("disks");
    expect(entry["vars"]).to.include({ osDisk: "/dev/vda" });
  });

  it("names a machine after its address, or by its host name", () => {
    expect(usualName("192.0.2.13")).to.equal("kvm-node-192-0-2-13");
    expect([usualName("2001:db8::1"), usualName("C.example.org")]).to.deep.equal(["kvm-node-2001-db8-1", "c"]);
  });
});

describe("an install of a machine that is in the roster", () => {
  const text = "nodes:\n  c: # mine\n    address: 192.0.2.13\n    roles: [worker] # for now\n    vars: { rack: r1 }\n";
  const entry = nodeEntry("c", {
    id,
    address: "192.0.2.13",
    port: 22,
    roles: ["worker"],
    dc: "DC1",
    vars: { rack: "r1" },
  });
  const known = (changes = {}): Machine =>
    machine({
      entry: { ...entry, ...changes },
      isInRoster: true,
      roster: {
        nodes: new Map([["c", entry]]),
        jumps: new Map(),
        positions: new Map([["c", { file: "roster/a.yaml", line: 2, column: 3 }]]),
        files: [],
      },
    });
  const edited = (words: readonly string[], before = text, from = known()): string => {
    const edit = planEntry(from, planInstall(requestFrom(flagsOf(...base, ...words))), { key, inventory });
    expect(edit).to.include({ name: "c", file: "roster/a.yaml" });
    return edit.edit({ file: edit.file, text: before });
  };

  it("changes only the given values, and keeps the rest of the file byte for byte", () => {
    const after = edited(["--dc-id", "DC2", "--run-controller"]);
    expect(after).to.contain("  c: # mine\n    address: 192.0.2.13\n");
    const { nodes } = parsePlainYaml(after) as { nodes: { c: Record<string, unknown> } };
    expect(nodes.c).to.deep.include({ dc: "DC2", roles: ["controller"], hostKeys: ["ssh-ed25519 AAAA"] });
    expect(nodes.c["vars"]).to.deep.include({ rack: "r1", osDisk: "/dev/sda" });
  });

  it("removes installOs with --os-installed", () => {
    const before = text.replace("rack: r1", "rack: r1, installOs: debian");
    expect(edited([], before)).to.contain("rack: r1").and.not.to.contain("installOs");
  });

  it("keeps the roster's installOs, unless --os names another system", () => {
    const words = base.filter((word) => word !== "--os-installed");
    const before = text.replace("rack: r1", "rack: r1, installOs: nixos");
    const after = (...more: readonly string[]): string =>
      planEntry(known(), planInstall(requestFrom(flagsOf(...words, ...more))), { key, inventory }).edit({
        file: "roster/a.yaml",
        text: before,
      });
    expect(after()).to.contain("installOs: nixos");
    expect(after("--os", "debian")).to.contain("installOs: debian");
  });

  it("refuses to install on the disk that the machine runs from, unless kcore installed it", () => {
    const words = base.filter((word) => word !== "--os-installed");
    const own = inventoryOf([...devices, device("sda2", { type: "part", disk: "sda", mounts: ["/"] })]);
    const plan = (vars: object): unknown =>
      planEntry(known({ vars }), planInstall(requestFrom(flagsOf(...words))), { key, inventory: own }).name;
    expect(problemsIn(() => plan({}))[0]).to.contain("this machine runs from /dev/sda (/dev/sda2 is /)");
    expect(plan({ installOs: "debian" })).to.equal("c");
  });

  it("changes nothing when run again", () => {
    const once = edited([]);
    const written = (parsePlainYaml(once) as { nodes: { c: Record<string, unknown> } }).nodes.c;
    expect(edited([], once, known(written))).to.equal(once);
  });

  it("is refused if a disk's path names another disk than the one pinned in the roster", () => {
    const words = base.filter((word) => word !== "--os-installed").concat("--data-disk", "/dev/sdb");
    const pinned = {
      vars: { installOs: "debian" },
      disks: [
        { serial: "A", use: "os" },
        { serial: "B", use: "volumes" },
      ],
    };
    const found = (...serials: readonly string[]): readonly string[] => {
      const now = serials.map((serial, index) => device(`sd${"abc"[index] ?? ""}`, { serial }));
      return problemsIn(() => {
        planEntry(known(pinned), planInstall(requestFrom(flagsOf(...words))), { key, inventory: inventoryOf(now) });
        throw new KcoreError({ code: "USAGE", message: "nothing" });
      });
    };
    expect(found("A", "B", "C")[0]).to.contain("nothing");
    // The roster does not pin the serial number C, so that /dev/sdb is a further data disk.
    expect(found("A", "C", "B")[0]).to.contain("nothing");
    expect(found("B", "A", "C")[0]).to.contain(
      "/dev/sda is the disk with the serial number B now, which the roster has as a disk of c with use: volumes",
    );
    expect(found("C", "B", "A")[0]).to.contain(
      "/dev/sda is the disk with the serial number C now, and the roster has /dev/sdc, the one with the serial number A, as the OS disk of c",
    );
    expect(found("A", "A", "B")[0]).to.contain("/dev/sda and /dev/sdb are both the disk with the serial number A");
  });

  it("recognises a pinned disk by its WWN in any notation", () => {
    const words = base.filter((word) => word !== "--os-installed");
    const pinned = { vars: { installOs: "debian" }, disks: [{ wwn: "naa.5000C5000000000A", use: "os" }] };
    const now = (wwn: string) => [device("sda", { serial: "A", wwn }), device("sdb", { serial: "B" })];
    const edit = (wwn: string): string =>
      planEntry(known(pinned), planInstall(requestFrom(flagsOf(...words))), {
        key,
        inventory: inventoryOf(now(wwn)),
      }).edit({
        file: "roster/a.yaml",
        text,
      });
    expect(edit("0x5000c5000000000a")).not.to.contain("serial: A");
    expect(problemsIn(() => edit("0x5000c5000000000b"))[0]).to.contain(
      "/dev/sda is the disk with the serial number A now",
    );
  });

  it("is refused under another name or id", () => {
    for (const words of [
      ["--hostname", "d"],
      ["--node-id", "0b7d2a52-7c1e-4f0e-9a50-0d8a3b0f4e11"],
    ])
      expect(problemsIn(() => edited(words))[0]).to.contain("in the roster already, as c");
  });
});
