import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { shippedRoot } from "#engine/project/shipped.ts";
import type { Report } from "#rollout/records.ts";
import { Journal } from "#updater/journal.ts";
import { createTestCluster, passphrase, type TestCluster } from "./cluster.ts";
import { writeRuntime } from "./bundles.ts";
import { TestProject, type Ended } from "./kcore.ts";
import type { SshServer } from "./ssh-server.ts";
import { startSshd } from "./sshd.ts";
import type { UpdaterBehaviour } from "./updater-process.ts";
import { writeBundleFile } from "../../src/cli/update/bundles.ts";

const old = `/nix/store/${"0".repeat(32)}-kcore-0.1.0`;

/** Nodes behind a private sshd, each with a stand-in for the updater; a cluster's CA on the bastion, and a bundle. */
export class UpdateNodes {
  readonly project: TestProject;
  readonly cluster: TestCluster;
  readonly target: string;
  readonly #sshd: SshServer;
  readonly #updaters: ChildProcess[] = [];

  private constructor(fields: { project: TestProject; cluster: TestCluster; target: string; sshd: SshServer }) {
    this.project = fields.project;
    this.cluster = fields.cluster;
    this.target = fields.target;
    this.#sshd = fields.sshd;
  }

  /** `roster` has more fields of each node's entry; no server listens on port 1. */
  static async start(roster: Readonly<Record<string, string>>): Promise<UpdateNodes> {
    const project = new TestProject();
    const cluster = await createTestCluster();
    const sshd = await startSshd();
    const { bundle, file } = await writeRuntime(project.path, "0.2.0");
    await writeBundleFile(join(project.path, "kcore.bundle"), { bundle, file, start: 0 });
    rmSync(file);
    const nodes = new UpdateNodes({ project, cluster, target: bundle.storePath, sshd });
    const entries = Object.entries(roster).map(([name, more]) => nodes.#entry(name, more));
    project.write({ "project/roster/nodes.yaml": `nodes:\n${entries.join("")}`, ...ownStates() });
    for (const name of Object.keys(roster)) await nodes.#startUpdater(name);
    return nodes;
  }

  #entry(name: string, more: string): string {
    const { port, hostKey, identityFile } = this.#sshd;
    const usual = { port, identityFile, hostKeys: `[${hostKey}]`, stateDir: this.stateDir(name), user: "root" };
    const fields = Object.entries(usual).filter(([key]) => !more.includes(`${key}:`));
    return `  ${name}: { address: 127.0.0.1, ${fields.map(([key, value]) => `${key}: ${value}`).join(", ")}${more === "" ? "" : `, ${more}`} }\n`;
  }

  async #startUpdater(name: string): Promise<void> {
    const dir = this.stateDir(name);
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const program = join(import.meta.dirname, "updater-process.ts");
    const profile = join(dir, "kcore");
    this.#updaters.push(spawn(process.execPath, [program, join(dir, "updates"), profile, old], { stdio: "inherit" }));
    symlinkSync("kcore-updater-1-link", `${profile}-updater`);
    while (!existsSync(`${profile}.path`)) await sleep(20);
  }

  stateDir(name: string): string {
    return join(this.project.path, "nodes", name);
  }

  behave(name: string, behaviour: UpdaterBehaviour): void {
    const file = join(this.stateDir(name), "updates/behaviour.json");
    writeFileSync(`${file}.new`, JSON.stringify(behaviour));
    renameSync(`${file}.new`, file);
  }

  report(name: string): Report | undefined {
    const file = join(this.stateDir(name), "updates/journal.json");
    return existsSync(file) ? Journal.parse(JSON.parse(readFileSync(file, "utf8"))).report : undefined;
  }

  runtime(name: string): string {
    return readFileSync(join(this.stateDir(name), "kcore.path"), "utf8").replace(/^.*-kcore-/, "");
  }

  /** `kcore orchestrate update -f rollout.yaml WORDS…`, for a manifest with this spec. */
  start(spec: string, ...words: readonly string[]): ReturnType<TestProject["start"]> {
    const text = `apiVersion: kcore.io/v1\nkind: ClusterUpdate\nmetadata: { name: u1 }\nspec:\n  target: { version: 0.2.0 }\n${spec}`;
    this.project.write({ "project/rollout.yaml": text });
    return this.kcore("orchestrate", "update", "-f", "rollout.yaml", "--bundle", "../kcore.bundle", ...words);
  }

  update(spec: string, ...words: readonly string[]): Promise<Ended> {
    return this.start(spec, ...words).ended;
  }

  kcore(...words: readonly string[]): ReturnType<TestProject["start"]> {
    return this.project.start(words, { KCORE_HOME: this.cluster.home, KCORE_CA_PASSPHRASE: passphrase });
  }

  async stop(): Promise<void> {
    for (const updater of this.#updaters) updater.kill("SIGKILL");
    await this.#sshd.stop();
    await this.project.remove();
    await this.cluster.remove();
  }
}

/** The shipped states, with the profile of each node in a folder of its own: this machine has no Nix. */
function ownStates(): Readonly<Record<string, string>> {
  const names = ["look", "fence", "prepare", "activate", "hold", "back"];
  const texts = names.map((name) => {
    const text = readFileSync(join(shippedRoot(), `states/update/${name}.yaml`), "utf8");
    const own = text.replace("default: /nix/var/nix/profiles/kcore", 'default: "{{node.stateDir}}/kcore"');
    if (own === text) throw new Error(`${name} has no such default`);
    return [`project/states/update/${name}.yaml`, own];
  });
  return Object.fromEntries(texts) as Record<string, string>;
}
