import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { runTasks, tasksAsLines } from "#base/tasks.ts";
import { evaluateLayout } from "#engine/layout/evaluate-layout.ts";
import { resolveLayouts } from "#manifests/resolve-layouts.ts";
import { readManifests } from "#manifests/read-manifests.ts";
import { diskInventoryText, readDiskInventory } from "#engine/program/disk-inventory.ts";
import { kcoreProgram } from "#support/deploy.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";
import { openLoopDisk, type LoopDisk } from "#support/loop-disk.ts";
import { problemsOfRejection } from "#support/problems.ts";

describe("kcore diff and apply of a DiskLayout, on this machine", () => {
  let project: TestProject;
  let disk: LoopDisk | undefined;

  before(function () {
    project = new TestProject();
    disk = openLoopDisk(project.path, Buffer.alloc(0));
    if (!disk) this.skip();
  });
  after(async () => {
    disk?.remove();
    await project.remove();
  });

  const manifest = (device: string, node = "here"): string => `kind: DiskLayout
metadata: { name: data }
spec:
  nodeId: ${node}
  diskLayout:
    disks:
      - name: data1
        device: ${device}
        gpt:
          partitions: [{ name: kcore0, size: 100%, content: { type: filesystem, format: ext4 } }]
`;
  const manifestOfTwo = (other: LoopDisk): string => {
    const entry = (name: string, byId = ""): string =>
      `      - { name: ${name}, device: /dev/disk/by-id/${byId}, gpt: { partitions: [{ name: kcore0, size: 100% }] } }\n`;
    const header = "kind: DiskLayout\nmetadata: { name: data }\nspec:\n  nodeId: here\n  diskLayout:\n    disks:\n";
    return header + entry("data1", disk?.byId) + entry("data2", other.byId);
  };
  const runWith = (verb: string, text: string, ...words: readonly string[]): Promise<CommandEnd> => {
    project.write({ "project/disks.yaml": text });
    return project.kcore(verb, "-f", "disks.yaml", ...words);
  };
  const link = (): string => `/dev/disk/by-id/${disk?.byId ?? ""}`;
  const sumOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
  const sum = (image = disk?.image): string => sumOf(readFileSync(image ?? ""));
  /** Puts a filesystem on the disk, so that kcore wipes it only with a grant. */
  const formatDisk = (): void => void execFileSync("mkfs.ext4", ["-qF", disk?.device ?? ""]);
  interface LayoutDiff {
    readonly result: string;
    readonly phase: string;
    readonly disks: readonly { verdict: string; id: object; before: readonly object[]; after: readonly object[] }[];
    readonly refusals: readonly { code: string; reason: string; message: string }[];
  }

  it("shows what would be made on a blank disk, as a drawing and as JSON", async () => {
    const drawn = await runWith("diff", manifest(link()));
    expect(drawn.code, drawn.stderr).to.equal(1);
    expect(drawn.stdout)
      .to.contain(`byId ${disk?.byId ?? ""}, 64M, ${disk?.device ?? ""} now`)
      .and.contain("SAFE: it is blank");
    expect(drawn.stdout).to.match(
      /disklayout\/data would be created\n.*\n? *~ node partition\[data1\]: table: none -> gpt/s,
    );
    const [withoutNix] = JSON.parse((await runWith("diff", manifest(link()), "-o", "json")).stdout) as [LayoutDiff];
    expect([withoutNix.result, withoutNix.phase, withoutNix.refusals]).to.deep.equal(["created", "pending", []]);
    expect(withoutNix.disks[0]).to.deep.include({ verdict: "safe", id: { byId: disk?.byId } });
    expect(withoutNix.disks[0]?.before).to.deep.equal([{ size: disk?.size, holds: "blank", fate: "free" }]);
    expect(sum()).to.equal(sumOf(Buffer.alloc(disk?.size ?? 0)));
  });

  it("refuses a disk with data in diff and apply, names the grant, and writes nothing", async () => {
    formatDisk();
    const before = sum();
    const [told] = JSON.parse((await runWith("diff", manifest(link()), "-o", "json")).stdout) as [LayoutDiff];
    const reasons = told.refusals.map(({ code, reason }) => `${code} ${reason}`);
    expect([told.result, told.disks[0]?.verdict, reasons]).to.deep.equal([
      "refused",
      "holds data",
      ["DISK_HAS_DATA target_device_holds_data"],
    ]);
    const [, grant = ""] = /--grant (\S+:[0-9a-f]{16})/.exec(told.refusals[0]?.message ?? "") ?? [];
    const granted = await runWith("diff", manifest(link()), "--grant", grant);
    expect(granted.stdout).to.contain("disklayout/data would be created");
    const applied = await runWith("apply", manifest(link()), "-o", "json");
    expect([applied.code, (JSON.parse(applied.stdout) as [LayoutDiff])[0].phase]).to.deep.equal([1, "refused"]);
    expect(applied.stderr).to.contain("DISK_HAS_DATA");
    expect(sum()).to.equal(before);
  });

  it("asks at a terminal, and leaves the disk unchanged unless its name is typed", async () => {
    formatDisk();
    project.write({ "project/disks.yaml": manifest(link()) });
    const before = sum();
    await project.atTerminal(async (shell) => {
      await shell.enter(`clear; '${kcoreProgram}' apply -f disks.yaml; echo "ended: $?"`);
      await shell.shows(/or only Enter to leave it:$/m);
      await shell.enter("yes");
      expect(await shell.shows(/ended: 1/))
        .to.contain("It is left as it is.")
        .and.contain("[DISK_HAS_DATA]");
    });
    expect(sum()).to.equal(before);
  });

  it("writes to neither of two disks while one has no grant", async function () {
    const folder = join(project.path, `${disk?.byId ?? ""}-other`);
    mkdirSync(folder);
    const other = openLoopDisk(folder, Buffer.alloc(0));
    if (!other) return this.skip();
    formatDisk();
    execFileSync("mkfs.ext4", ["-qF", other.device]);
    project.write({ "project/disks.yaml": manifestOfTwo(other) });
    const sums = (): readonly string[] => [sum(), sum(other.image)];
    const before = sums();
    try {
      await project.atTerminal(async (shell) => {
        await shell.enter(`clear; '${kcoreProgram}' apply -f disks.yaml; echo "ended: $?"`);
        const [, name = ""] = /Type (\S+) to wipe it/.exec(await shell.shows(/or only Enter to leave it:$/m)) ?? [];
        await shell.enter(name);
        const asked = new RegExp(
          `ended: 1|Type (?!${name} )\\S+ to wipe it on here in another run, or only Enter to leave it:$`,
          "m",
        );
        if (!/ended: 1/.test(await shell.shows(asked))) await shell.enter("");
        expect(await shell.shows(/ended: 1/)).to.contain("It is left as it is.");
      });
    } finally {
      other.remove();
    }
    expect(sums()).to.deep.equal(before);
  });

  it("refuses a mounted disk whatever is granted, and writes to no blank disk of the same layout", async function () {
    // A disk of its own: a namespace of another program, made meanwhile, would hold the mount as long as it lives.
    const place = join(project.path, `${disk?.byId ?? ""}-mounted`);
    mkdirSync(place);
    const mounted = openLoopDisk(place, Buffer.alloc(0));
    if (!mounted) this.skip();
    const mountPoint = join(project.path, "srv");
    mkdirSync(mountPoint);
    execFileSync("mkfs.ext4", ["-qF", mounted.device]);
    try {
      if (spawnSync("mount", ["-r", mounted.device, mountPoint]).status !== 0) this.skip();
      try {
        disk?.write(Buffer.alloc(disk.size));
        const before = [sum(), sum(mounted.image)];
        const ended = await runWith("apply", manifestOfTwo(mounted), "--grant", `${mounted.byId}:${"0".repeat(16)}`);
        expect(ended.code).to.equal(1);
        expect(ended.stdout).to.contain("REFUSED (DISK_LAYOUT_MOUNTED, target_device_has_active_system_mount)");
        expect(ended.stderr)
          .to.contain("is in use, which no grant overrides  [DISK_LAYOUT_MOUNTED]")
          .and.contain(`${mounted.device} is mounted at ${mountPoint}`);
        expect([sum(), sum(mounted.image)]).to.deep.equal(before);
      } finally {
        execFileSync("umount", [mountPoint]);
      }
    } finally {
      mounted.remove();
    }
  });

  it("reads the same disk inventory in every shell", () => {
    formatDisk();
    const inventories = ["dash", "bash", "busybox sh"].map((shell) => {
      const { status, stdout, stderr } = spawnSync("sh", ["-c", `exec ${shell} -s`], {
        input: diskInventoryText(),
        encoding: "utf8",
      });
      expect([status, stderr], shell).to.deep.equal([0, ""]);
      return readDiskInventory(stdout)?.devices.find(({ path }) => path === disk?.device);
    });
    expect(inventories[0]).to.deep.include({ type: "loop", size: disk?.size, fstype: "ext4", links: [link()] });
    expect(inventories[1]).to.deep.equal(inventories[0]);
    expect(inventories[2]).to.deep.equal(inventories[0]);
  });

  it("names an unknown node, an invalid device, a missing disk and a disk that is too small", async () => {
    const unknownNode = await runWith("diff", manifest(link(), "her"));
    expect([unknownNode.code, unknownNode.stderr]).to.satisfy(
      ([code, text]: [number, string]) => code === 2 && text.includes("disks.yaml:4:11") && text.includes("“here”"),
    );
    const invalid = await runWith("diff", manifest("S1"), "-o", "json");
    const [problem] = (JSON.parse(invalid.stderr) as { problems: { code: string; reason: string }[] }).problems;
    expect([invalid.code, problem?.code, problem?.reason]).to.deep.equal([2, "DISK_LAYOUT_INVALID", "invalid_layout"]);
    const missing = await runWith("diff", manifest("/dev/disk/by-id/missing"), "-o", "json");
    const [told] = JSON.parse(missing.stdout) as [LayoutDiff];
    expect(told.refusals.map(({ code }) => code)).to.deep.equal(["DISK_NOT_FOUND"]);
    formatDisk();
    const before = sum();
    const large = await runWith("diff", manifest(link()).replace("100%", "1G"), "-o", "json");
    const [small] = JSON.parse(large.stdout) as [LayoutDiff];
    expect([small.disks[0]?.verdict, small.refusals.map(({ code }) => code)]).to.deep.equal([
      "refused",
      ["DISK_TOO_SMALL"],
    ]);
    expect(sum()).to.equal(before);
  });
});

describe("a layout in Nix", () => {
  const at = { file: "d.yaml", line: 1, column: 1 };
  const evaluate = (text: string): Promise<unknown> => evaluateLayout(text, { name: "layoutNix", at });
  const problems = (text: string): Promise<string[]> => problemsOfRejection(evaluate(text));

  before(function () {
    // npm test installs it (scripts/set-up.sh); a contributor's machine may lack it.
    if (spawnSync("nix-instantiate", ["--version"]).status !== 0) {
      process.stderr.write("    nix-bin is not installed: layouts in Nix are not tried\n");
      this.skip();
    }
  });

  it("is an attribute set, or a function whose arguments have defaults", async () => {
    expect(await evaluate("{ disko.devices.disk = { a = 1 + 1; }; }")).to.deep.equal({ disk: { a: 2 } });
    expect(await evaluate('{ lib, disks ? [ "/dev/vdb" ], ... }: { disko.devices.x = disks; }')).to.deep.equal({
      x: ["/dev/vdb"],
    });
    expect((await problems("{ lib, ... }: { disko.devices = lib.mkForce { }; }"))[0]).to.contain(
      "DISK_LAYOUT_NIX_FAILED",
    );
    expect((await problems("{ networking = { }; }"))[0]).to.contain(
      "layoutNix holds no disko.devices [DISK_LAYOUT_INVALID]",
    );
  });

  it("reads no file, fetches nothing, and ends within limits of time and size", async () => {
    for (const text of [
      "builtins.readFile /etc/passwd",
      "import <nixpkgs>",
      'builtins.fetchurl "http://192.0.2.1/"',
      "(let f = x: f x; in f 1)",
      "(let f = x: [ (f (x + 1)) ]; in f 1)",
      "{",
    ])
      expect((await problems(`{ disko.devices = ${text}; }`))[0], text).to.match(
        /layoutNix (?:cannot be evaluated|was not evaluated within 10 s, or is too large) \[DISK_LAYOUT_NIX_FAILED\]/,
      );
    const large = 'builtins.foldl\' (text: _: text + text) "x" (builtins.genList (x: x) 22)';
    for (const text of [large, `builtins.trace (${large}) 1`])
      expect(await problems(`{ disko.devices = ${text}; }`), text).to.deep.equal([
        "d.yaml:1:1+1 layoutNix was not evaluated within 10 s, or is too large [DISK_LAYOUT_NIX_FAILED]",
      ]);
    const told = await problemsOfRejection(evaluateLayout("{ }", { name: "n", at, path: "/nowhere" }));
    expect(told[0]).to.contain("this machine has no nix-instantiate [DISK_LAYOUT_NIX_MISSING] | apt install nix-bin");
  });

  it("becomes the layout of a manifest, from the manifest's text or from a file beside it", async () => {
    const project = new TestProject({
      "disks.nix": `{ disk ? "/dev/vdb", ... }: {
  disko.devices.disk.data1 = {
    type = "disk";
    device = disk;
    content = { type = "gpt"; partitions.kcore0 = { size = "100%"; content = { type = "filesystem"; format = "ext4"; mountpoint = "/srv"; }; }; };
  };
}
`,
    });
    try {
      const file = join(project.project, "d.yaml");
      const read = (spec: string) =>
        readManifests(file, `kind: DiskLayout\nmetadata: { name: d }\nspec: { nodeId: n1, ${spec} }\n`);
      const told: string[] = [];
      const tasks = tasksAsLines((line) => void told.push(line));
      const [manifest] = await resolveLayouts(read("layoutNixFile: disks.nix"), tasks);
      expect(told).to.deep.equal(["evaluating the layout d"]);
      expect(manifest).to.have.nested.property("layout.disks[0].gpt.partitions[0].content.mountpoint", "/srv");
      const wrong = await problemsOfRejection(
        resolveLayouts(
          [
            ...read(
              `layoutNix: '{ disko.devices.disk.a = { device = "x"; content.partitions.p = { size = "1X"; uuid = "1"; }; }; }'`,
            ),
            ...read(
              `layoutNix: '{ disko.devices.disk.a = { device = "x"; content.partitions.p = { size = "1X"; }; }; }'`,
            ),
            ...read("layoutNix: '{ disko.devices.disk = { }; }'"),
          ],
          runTasks,
        ),
      );
      expect(wrong.map((line) => line.replace(/^.*?\d+:\d+\+\d+ /, "").replace(/ \|.*/, ""))).to.deep.equal([
        "layoutNix: disko.devices.disk.a.content.partitions.p.uuid: kcore does not know it [DISK_LAYOUT_UNSUPPORTED]",
        "layoutNix: “x” is not the path of a disk [DISK_LAYOUT_INVALID]",
        "layoutNix: “1X” is no size [DISK_LAYOUT_INVALID]",
        "layoutNix: the layout has no disk [DISK_LAYOUT_NO_DISKS]",
      ]);
    } finally {
      await project.remove();
    }
  });
});
