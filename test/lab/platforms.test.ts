import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { parse } from "yaml";
import { exampleIn } from "#cli/modules/known-modules.ts";
import { registry } from "#engine/modules/registry.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { on } from "#support/deploy.ts";
import { packages, standInForNixOs } from "#support/nixos-stand-in.ts";
import { cellOf, endOf, readPlatforms } from "#support/platforms.ts";
import { SharedLine } from "#support/shared-line.ts";
import { contextOf, runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import type { Sample } from "#support/sample.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";
import { ownLab } from "#support/own-lab.ts";
import { samples } from "./catalogue/all.ts";

type Args = Readonly<Record<string, unknown>>;

/** Arguments for modules whose samples and example do not fit a node on which nothing was applied. */
const instead: Readonly<Record<string, Args>> = {
  "command.run": { argv: ["true"] },
  "disk.partitioned": { disk: { serial: "x1-disk2" }, partitions: [{ name: "data", size: "100%" }] },
  "fact.assert": { that: [{ cpus: 1 }] },
  "file.managed": { path: "/srv/file", content: "x" },
  "http.ready": { url: "http://127.0.0.1:8099/file" },
  "network.interface": { name: "host0", dhcp: "ipv4" },
  "port.open": { port: 8099 },
  "runtime.updated": {
    to: "reached",
    update: "u1",
    owner: "bastion",
    target: `/nix/store/${"0".repeat(32)}-kcore-0.1.0`,
  },
  "service.running": { name: "ssh" },
  "user.managed": { name: "kcore", home: "/var/lib/kcore" },
  "wait.for": { path: "/etc" },
};

describe("dry runs of the modules on other systems than Debian", () => {
  const rows = readPlatforms();
  const nodes = new Map<string, LabNode>();
  const lines = new Map<string, SharedLine>();
  let lab: Lab;
  let files: TempDir;

  before(async () => {
    files = await makeTempDir("platforms");
    await writeFile(join(files.path, "one"), "x");
    lab = await ownLab();
    const disks = ["128M", "128M", "128M"];
    const up = await lab.up([
      { name: "x1", kind: "debian", disks },
      { name: "b1", kind: "busybox", disks },
    ]);
    for (const node of up) nodes.set(node.name, node);
    await on(nodeOf("x1"), `apt-get -q update && apt-get -qy install ${packages.join(" ")}`, 300_000);
    for (const { before: text } of samples) if (text !== undefined) await on(nodeOf("x1"), text);
    for (const { module, before: text } of samples)
      if (text !== undefined && module === "file.downloaded") await on(nodeOf("b1"), text);
    for (const serial of ["x1-disk0", "x1-disk1"]) {
      const partitions = ["data", "root"].map((name) => ({ name, size: "40M" }));
      const made = await alone("x1", "disk.partitioned", { disk: { serial }, partitions }, {});
      expect(made.outcome, JSON.stringify(made)).to.equal("changed");
    }
    await on(nodeOf("x1"), standInForNixOs);
  });
  after(async () => {
    for (const line of lines.values()) line.close();
    await lab?.down();
    await files?.remove();
  });

  function nodeOf(name: string): LabNode {
    return nodes.get(name) as LabNode;
  }

  async function alone(name: string, module: string, args: Args, options: StepRunOptions) {
    const loaded = (await registry.get(module)?.()) as ModuleDefinition;
    const node = nodeOf(name);
    const saved = { ".kcore/tables/pieces.gz": "x" };
    const step = stepOf(loaded, args, contextOf({ node: name, nodeId: node.id, files: saved }));
    const line = lines.get(name) ?? new SharedLine(node);
    lines.set(name, line);
    return runStepOn(line.via, step, options);
  }

  /** The example of a module's doc comment, with existing disks and files. */
  async function exampleOf(name: string, module: string): Promise<Args> {
    const source = join(import.meta.dirname, "../../src/engine/modules", `${module.replaceAll(/[._]/g, "-")}.ts`);
    const text = (exampleIn(await readFile(source, "utf8")) ?? "")
      .replaceAll("S3Z8NB0K", `${name}-disk0`)
      .replaceAll("S3Z8NB1M", `${name}-disk1`)
      .replaceAll(/partition: \w+/g, "partition: data")
      .replace(/source: \.kcore\S+/, "source: .kcore/tables/pieces.gz")
      .replaceAll(/\/(srv\/dc1\/nixos\/flake.nix|var\/cache\/debian.tar.gz)/g, join(files.path, "one"))
      .replaceAll(/e3b0c44298fc\w+/g, createHash("sha256").update("x").digest("hex"));
    return (parse(text) as Record<string, Args>)[module] as Args;
  }

  async function triesOf(name: string, module: string): Promise<readonly Args[]> {
    if (instead[module]) return [instead[module]];
    // A sample's disk belongs to another node.
    const isElsewhere = ({ args }: Sample): boolean => args["disk"] !== undefined || args["disks"] !== undefined;
    const own = samples.filter((sample) => sample.module === module && !sample.helps && !isElsewhere(sample));
    return own.length > 0 ? own.map(({ args }) => args) : [await exampleOf(name, module)];
  }

  async function cellOn(name: string, module: string): Promise<string> {
    const ends: string[] = [];
    for (const args of await triesOf(name, module)) ends.push(endOf(await alone(name, module, args, { dryRun: true })));
    return cellOf(ends);
  }

  for (const [module, { busybox, nixos }] of rows) {
    it(`${module} on an emulated NixOS: ${nixos}`, async () => {
      expect(await cellOn("x1", module)).to.equal(nixos);
    });
    // The catalogue's own test tries modules with a sample.
    if (!samples.some((sample) => sample.module === module && sample.busybox))
      it(`${module} on BusyBox: ${busybox}`, async () => {
        expect(await cellOn("b1", module)).to.equal(busybox);
      });
  }
});
