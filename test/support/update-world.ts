import { join } from "node:path";
import { Updater } from "#updater/updater.ts";
import { nixosStrategy } from "#updater/nixos-strategy.ts";
import { presentSystem } from "#updater/nixos-systems.ts";
import { updateFiles } from "#updater/files.ts";
import { Journal } from "#updater/journal.ts";
import type { ProgramEnd, Ports, FreeSpace } from "#updater/ports.ts";
import { presentRuntime, runtimeStrategy } from "#updater/runtime-strategy.ts";
import { NodeFiles } from "#support/node-files.ts";
import { ownershipOf } from "#support/ownership.ts";
import type { Order, OrderStep } from "#rollout/order.ts";
import type { FencingToken, Report } from "#rollout/records.ts";
import { updateKindOf, UpdateStatement, UpdateSpec, type Bundle, type OwnershipStatement } from "#rollout/spec.ts";

/** The behaviour of a version on the node. */
export interface VersionBehaviour {
  readonly runs?: boolean;
  readonly reaches?: boolean;
  /** The exit code of its `--version`. */
  readonly exit?: number;
}

export const profile = "/nix/var/nix/profiles/kcore";
const folder = "/var/lib/kcore/updates";
const statusFile = "/var/lib/kcore/status.json";
const hashOf = (name: string): string => `sha256:${"0".repeat(52 - name.length)}${name}`;
const digestOf = (version: string): string => version.replaceAll(/\D/g, "").padStart(64, "0");

export function runtimePath(version: string): string {
  return `/nix/store/${"0".repeat(32)}-kcore-${version}`;
}

export function bundleOf(version: string, fields: Partial<Bundle> = {}): Bundle {
  return {
    sha256: digestOf(version),
    size: 1_000,
    storePath: runtimePath(version),
    narHash: hashOf(version.replaceAll(/\D/g, "")),
    version,
    arch: "x86_64",
    ...fields,
  };
}

export function statementOf(version: string, spec: object = {}, fields: object = {}): UpdateStatement {
  return UpdateStatement.parse({
    kind: "ClusterUpdate",
    cluster: "test",
    name: "u1",
    spec: UpdateSpec.parse({ target: { version }, selector: { allNodes: true }, ...spec }),
    bundle: bundleOf(version),
    signedAt: "2026-01-01T00:00:00.000Z",
    ...fields,
  });
}

interface FakeUnit {
  pid: number;
  program: string;
  since: number;
  isEnabled: boolean;
}

/**
 * A node in memory that does the work of Nix, systemd and the daemons, and refuses unknown programs. A power cut loses or damages unflushed
 * data.
 */
export class UpdateWorld {
  readonly #disk = new NodeFiles();
  readonly files = this.#disk.files;
  readonly links = this.#disk.links;
  readonly bundles = new Map<string, { size: number; sha256: string; holds: string }>();
  readonly behaviours = new Map<string, VersionBehaviour>();
  readonly gates = new Map<string, boolean>();
  readonly store = new Map<string, "whole" | "unflushed" | "damaged">();
  /** The results of programs that fail, by the beginning of a command line. */
  readonly failures = new Map<string, ProgramEnd>();
  readonly commands: string[] = [];
  /** All reports of the updater. */
  readonly reports: Report[] = [];
  readonly units = new Map<string, FakeUnit>();
  /** Called with the name of each effect of the updater, before it. */
  onEffect: (what: string) => void = () => undefined;
  /** Units that an earlier updater left running. */
  readonly outside = new Set<string>();
  free = 1e12;
  roomAt = (_path: string): FreeSpace => ({ free: this.free, dev: 1 });
  /** A controller's answer to a request for a bundle. */
  onDownload: Ports["download"] = ({ version }) => Promise.resolve(this.fetch(version));
  /** Files for which the disk has no room. */
  full: RegExp | undefined;
  /** The side that must hear from the node, as orders name it. */
  contact: Order["contact"];
  /** The command with which systemd starts the units, in place of the right one. */
  start: string | undefined;
  now = 1_000_000_000_000;
  uptime = 500_000;
  boots = 1;
  #pids = 100;
  #isGoingDown = false;

  constructor(version = "0.1.0") {
    this.store.set(runtimePath(version), "whole");
    for (const name of [profile, `${profile}-updater`]) {
      this.links.set(`${name}-1-link`, runtimePath(version));
      this.links.set(name, `${name.split("/").at(-1)}-1-link`);
    }
    for (const name of ["kcore-node-agent.service", "kcore-controller.service"])
      this.units.set(name, { pid: 0, program: "", since: 0, isEnabled: true });
    this.#startAll();
  }

  fetch(version: string): void {
    const { sha256, size } = bundleOf(version);
    this.bundles.set(`${folder}/bundles/${sha256}`, { size, sha256, holds: runtimePath(version) });
  }

  /** Puts an order into the inbox; by default the bastion signed the manifest and the owner. */
  order(
    step: OrderStep,
    statement: UpdateStatement,
    fence: Partial<FencingToken> = {},
    {
      signature = "c2lnbmVk",
      owner = {},
    }: {
      readonly signature?: string;
      readonly owner?: Partial<OwnershipStatement> & { readonly signature?: string };
    } = {},
  ): void {
    const given = { name: statement.name, epoch: 1, owner: "c1", generation: 1, seq: 1, ...fence };
    const order: Order = {
      fence: given,
      step,
      signed: { statement: JSON.stringify(statement), signature, signer: "" },
      ownership: {
        statement: JSON.stringify(ownershipOf({ ...given, ...owner })),
        signature: owner.signature ?? "c2lnbmVk",
        signer: "",
      },
      ...(this.contact && { contact: this.contact }),
    };
    this.files.set(join(folder, updateFiles.inbox), JSON.stringify(order));
  }

  /** Moves both clocks. */
  pass(ms: number): void {
    this.now += ms;
    this.uptime += ms;
  }

  /** Runs one process of the updater to its end. */
  async run(): Promise<void> {
    const ports = this.#ports();
    const log = { info: () => undefined, warn: () => undefined };
    await new Updater({
      folder,
      ports,
      log,
      self: { id: "id-1", hostname: "n1", dc: "DC1" },
      verify: ({ statement, signature }) => {
        if (signature !== "c2lnbmVk") throw new Error("it is not the bastion's word");
        return Promise.resolve(JSON.parse(statement));
      },
      present: (brings) => (brings === "system" ? presentSystem(ports, folder) : presentRuntime(ports)),
      strategyOf: (statement) =>
        updateKindOf(statement.spec) === "runtime"
          ? runtimeStrategy({ ports, log, statement, folder, statusFile, arch: "x86_64" })
          : nixosStrategy({ ports, statement, folder, statusFile, hostName: "n1" }),
    }).run();
  }

  /** Starts the updater as systemd would, until it has no more work. `onEnd` is called after each process that was cut off. */
  async live(onEnd: () => void = () => undefined): Promise<void> {
    for (let starts = 0; this.isWaiting; starts++) {
      if (starts > 20) throw new Error("the updater is started again and again");
      await this.run().catch((error: unknown) => {
        if (!(error instanceof ProcessEnds)) throw error;
        onEnd();
      });
    }
  }

  /** Gives orders one after the other, each once the order before is carried out. */
  async give(statement: UpdateStatement, ...steps: readonly OrderStep[]): Promise<void> {
    for (const step of steps) {
      this.order(step, statement, { seq: (this.report()?.fence.seq ?? 0) + 1 });
      await this.live();
    }
  }

  /** The version of the whole node. @throws Error if the node is between two versions */
  version(): string {
    const programs = [...this.units.values()].map(({ program }) => program);
    const { present, lasting = present } = this.report() ?? {};
    const paths = new Set([this.at(profile), ...programs, lasting?.id]);
    if (paths.size > 1) throw new Error(`between generations: ${[...paths].join(", ")}`);
    return [...paths][0]?.slice(runtimePath("").length) ?? "";
  }

  /** Whether systemd would start the updater. */
  get isWaiting(): boolean {
    return [updateFiles.inbox, updateFiles.taken].some((name) => this.files.has(join(folder, name)));
  }

  report(): Report | undefined {
    return this.files.has(join(folder, updateFiles.journal)) ? this.journal().report : undefined;
  }

  journal(): Journal {
    return Journal.parse(JSON.parse(this.files.get(join(folder, updateFiles.journal)) ?? "{}"));
  }

  generations(name: string): readonly number[] {
    return [...this.links.keys()]
      .filter((path) => path.startsWith(`${name}-`))
      .flatMap((path) => /^-(\d+)-link$/.exec(path.slice(name.length))?.[1] ?? [])
      .map(Number);
  }

  at(name: string): string | undefined {
    const link = this.links.get(name);
    return link === undefined ? undefined : this.links.get(join(name, "..", link));
  }

  /** The machine loses all unflushed data, and starts again. */
  powerCut(): void {
    this.#disk.powerCut();
    for (const [path, state] of this.store) if (state === "unflushed") this.store.set(path, "damaged");
    this.#boot();
  }

  /** The result of a program that only another kind of node has; undefined for other programs. */
  protected runOther(_words: readonly string[]): ProgramEnd | undefined {
    return undefined;
  }

  /** The start of the machine on another kind of node. */
  protected startOther(): void {}

  #boot(): void {
    this.#flush();
    for (const path of this.files.keys()) if (path.startsWith("/run/")) this.files.delete(path);
    this.boots += 1;
    this.now += 60_000;
    this.uptime = 20_000;
    this.#isGoingDown = false;
    this.startOther();
    this.#startAll();
  }

  #flush(): void {
    this.#disk.flush();
    for (const [path, state] of this.store) if (state === "unflushed") this.store.set(path, "whole");
  }

  #startAll(): void {
    for (const [name, unit] of this.units) if (unit.isEnabled) this.#start(name);
  }

  #start(name: string): void {
    const unit = this.units.get(name);
    if (!unit) throw new Error(`no unit ${name}`);
    const tried = /^ExecStart=(\/nix\/\S+?)\/bin/m.exec(this.files.get(dropinOf(name)) ?? "")?.[1];
    unit.pid = this.#pids++;
    unit.program = tried ?? this.at(profile) ?? "";
    unit.since = this.uptime;
  }

  #behaviourOf(path: string): VersionBehaviour {
    return this.behaviours.get(path.slice(runtimePath("").length)) ?? {};
  }

  /** The agent writes its status two seconds after its start, then every fifteen. */
  #status(): string {
    const agent = this.units.get("kcore-node-agent.service");
    if (!agent) return "{}";
    const { runs = true, reaches = true } = this.#behaviourOf(agent.program);
    const beats = Math.floor((this.uptime - agent.since - 2_000) / 15_000);
    const spoke = runs && reaches && this.uptime - agent.since > 2_000;
    const lastHeartbeat = new Date(this.now - this.uptime + agent.since + 2_000 + beats * 15_000).toISOString();
    const version = agent.program.slice(runtimePath("").length);
    return JSON.stringify({
      agent: { pid: agent.pid, version, ...(spoke ? { lastHeartbeat } : { error: "connection refused" }) },
    });
  }

  protected setLink(path: string, target: string): void {
    this.#disk.setLink(path, target);
  }

  #ports(): Ports {
    let isDead = false;
    const effect = (what: string): void => {
      // A process's work ends with the process.
      if (isDead) throw new ProcessEnds("it has ended");
      try {
        this.onEffect(what);
      } catch (error) {
        isDead = true;
        throw error;
      }
      this.now += 10;
      this.uptime += 10;
    };
    const step = async (what: string): Promise<void> => {
      await Promise.resolve();
      effect(what);
      if (what.startsWith("replace ") && this.full?.test(what)) throw new Error("ENOSPC: no space left on device");
    };
    const files = this.#disk.ports(step);
    return {
      ...files,
      run: async (words) => {
        const line = words.join(" ");
        await step(line);
        this.commands.push(line);
        const failure = [...this.failures].find(([start]) => line.startsWith(start))?.[1];
        return failure ?? this.#run(words);
      },
      read: async (path) => {
        const text = await files.read(path);
        return path === statusFile ? this.#status() : text;
      },
      replace: async (path, text) => {
        await files.replace(path, text);
        const { report } = this.journal();
        if (report && report.epoch !== this.reports.at(-1)?.epoch) this.reports.push(report);
      },
      readLink: async (path) => {
        const target = await files.readLink(path);
        const pid = /^\/proc\/(\d+)\/exe$/.exec(path)?.[1];
        if (pid === undefined) return target;
        const unit = [...this.units.values()].find((other) => String(other.pid) === pid);
        return unit && this.#behaviourOf(unit.program).runs !== false ? `${unit.program}/lib/ld.so` : undefined;
      },
      remove: async (path) => {
        await files.remove(path);
        this.bundles.delete(path);
      },
      list: async (parent) => {
        const bundles = [...this.bundles.keys()].filter((path) => join(path, "..") === parent);
        return [...(await files.list(parent)), ...bundles.map((path) => path.slice(parent.length + 1))];
      },
      sizeOf: async (path) => {
        await step(`sizeOf ${path}`);
        return this.bundles.get(path)?.size;
      },
      sha256Of: async (path) => {
        await step(`sha256Of ${path}`);
        return this.bundles.get(path)?.sha256 ?? "";
      },
      room: async (path) => {
        await step(`room ${path}`);
        return this.roomAt(path);
      },
      download: async (bundle, file, signal) => {
        await step(`download ${file}`);
        await this.onDownload(bundle, file, signal);
      },
      ask: async (url) => {
        await step(`ask ${url}`);
        if (this.gates.get(url) !== true) throw new Error("connection refused");
        return 200;
      },
      clock: () => this.now,
      uptime: () => this.uptime,
      bootId: async () => {
        await step("bootId");
        return `boot-${this.boots}`;
      },
      sleep: async (ms) => {
        await step("sleep");
        this.pass(ms);
        if (!this.#isGoingDown) return;
        this.#boot();
        throw new ProcessEnds("the machine goes down");
      },
    };
  }

  #run(given: readonly string[]): ProgramEnd {
    const words = given[0] === "systemd-run" ? expandedBySystemd(given) : given;
    const other = this.runOther(words);
    if (other) return other;
    const done = (stdout = ""): ProgramEnd => ({ code: 0, stdout, stderr: "" });
    const failed = (stderr: string): ProgramEnd => ({ code: 1, stdout: "", stderr });
    const [program = "", verb = "", ...rest] = words;
    const last = words.at(-1) ?? "";
    switch (program) {
      case "systemctl":
        if (verb === "show" && rest.includes("ActiveState"))
          return done(this.outside.has(last) ? "active\n" : "inactive\n");
        if (verb === "show") return done([...this.units.keys()].map((name) => this.#show(name)).join("\n\n"));
        if (verb === "stop") return this.outside.delete(last) ? done() : failed("not loaded");
        if (verb === "restart") for (const name of rest.slice(1)) this.#start(name);
        if (verb === "reboot") this.#isGoingDown = true;
        if (["restart", "reboot", "daemon-reload"].includes(verb)) return done();
        break;
      case "journalctl":
        return done(`the log of ${last}`);
      case "nix-store": {
        const state = this.store.get(last);
        if (verb === "--check-validity") return state ? done() : failed("is not valid");
        if (verb === "--verify-path") return state === "damaged" ? failed("was modified") : done();
        if (verb === "-q") return done(hashOf(last.slice(runtimePath("").length).replaceAll(/\D/g, "")));
        if (verb === "--delete") return this.store.delete(last) ? done() : failed("is not there");
        break;
      }
      case "nix-env": {
        const [name = "", how = "", what = ""] = rest;
        const id = how === "--set" ? what : (this.links.get(`${name}-${what}-link`) ?? "");
        if (!this.store.has(id)) return failed(`${id} is not in the store`);
        const newest = Math.max(...this.generations(name));
        const isNewest = this.links.get(`${name}-${newest}-link`) === id;
        const number = how === "--set" ? newest + (isNewest ? 0 : 1) : Number(what);
        this.setLink(`${name}-${number}-link`, id);
        this.setLink(name, `${name.split("/").at(-1)}-${number}-link`);
        return done();
      }
      case "systemd-run":
        return this.#run(words.slice(words.indexOf("--") + 1));
      case "sync":
        this.#flush();
        return done();
      case "sh": {
        const command = rest[0] ?? "";
        if (!command.includes("nix-store --import"))
          return this.gates.get(verb === "-c" ? command : "") === true ? done() : failed("no");
        const bundle = this.bundles.get(last);
        if (!bundle) return failed("no bundle");
        this.store.set(bundle.holds, "unflushed");
        return done();
      }
      default:
        if (verb === "--version" && this.store.has(program.replace(/\/bin\/kcore-node$/, ""))) {
          const path = program.replace(/\/bin\/kcore-node$/, "");
          const { exit = 0 } = this.#behaviourOf(path);
          return exit === 0
            ? done(`kcore ${path.slice(runtimePath("").length)}`)
            : { ...failed("SyntaxError"), code: exit };
        }
    }
    throw new Error(`the fake node was not taught: ${words.join(" ")}`);
  }

  #show(name: string): string {
    const unit = this.units.get(name);
    if (!unit) throw new Error(`no unit ${name}`);
    const isUp = this.#behaviourOf(unit.program).runs !== false;
    const verb = name.includes("agent") ? "agent run" : "controller serve";
    const tried = /^ExecStart=(\/nix\/\S+?)\/bin/m.exec(this.files.get(dropinOf(name)) ?? "")?.[1];
    const command = this.start ?? `${tried ?? profile}/bin/kcore-node ${verb}`;
    return [
      `Id=${name}`,
      "LoadState=loaded",
      `ActiveState=${isUp ? "active" : "activating"}`,
      `UnitFileState=${unit.isEnabled ? "enabled" : "disabled"}`,
      `MainPID=${isUp ? unit.pid : 0}`,
      `NRestarts=${isUp ? 0 : Math.floor((this.uptime - unit.since) / 10_000)}`,
      `ExecStart={ path=${profile}/bin/kcore-node ; argv[]=${command} ; ignore_errors=no }`,
    ].join("\n");
  }
}

/** The words of a command as systemd reads them (systemd.service(5), Command lines): here no variable has a value. */
function expandedBySystemd(words: readonly string[]): readonly string[] {
  const start = words.indexOf("--") + 1;
  const expanded = words
    .slice(start)
    .filter((word) => !/^\$\w+$/.test(word))
    .map((word) => word.replaceAll(/\$(\$)|\$\{\w+\}/g, "$1"));
  return [...words.slice(0, start), ...expanded];
}

/** The commands that restarted daemons. */
export function restarts({ commands }: UpdateWorld): readonly string[] {
  return commands.filter((words) => words.startsWith("systemctl restart"));
}

/** Calls `act` once, right before the first effect of the updater that begins with `start`. */
export function onceAt(world: UpdateWorld, start: string, act: () => void): void {
  world.onEffect = (what) => {
    if (!what.startsWith(start)) return;
    world.onEffect = () => undefined;
    act();
  };
}

/** The end of a process, by systemd or a power cut. */
export class ProcessEnds extends Error {}

function dropinOf(unit: string): string {
  return `/run/systemd/system/${unit}.d/kcore-update.conf`;
}
