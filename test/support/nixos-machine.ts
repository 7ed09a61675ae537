import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { signStatement } from "#pki/statement.ts";
import type { OrderStep } from "#rollout/order.ts";
import type { Report } from "#rollout/records.ts";
import { Statement, UpdateSpec } from "#rollout/spec.ts";
import { readReport, updatesFolder, writeOrder } from "#updater/files.ts";
import { createTestCluster, issueTo, writeCredentials, type TestCluster } from "#support/cluster.ts";
import { withOwnStore } from "#support/nixos.ts";
import { nodeProgram } from "#support/program.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const fixtures = join(import.meta.dirname, "../fixtures/nixos-systems");
export const systemProfile = "/nix/var/nix/profiles/system";
const name = "n1.example.org";

/** The flake.nix of what stands in for nixpkgs, which decides the kernel. */
export function nixpkgsFlake(kernel: string): string {
  return `{ outputs = { self }: { lib.nixosSystem = given: { config.system.build.toplevel = import ./lib.nix ({ kernel = "${kernel}"; } // given); }; }; }\n`;
}

/** The flake.nix with one machine's system, of the nixpkgs in that repository. */
export function systemsFlake(nixpkgs: string, machine: string, given: string): string {
  return `{
  inputs.nixpkgs.url = "git+file://${nixpkgs}";
  outputs = { self, nixpkgs }: { nixosConfigurations."${machine}" = nixpkgs.lib.nixosSystem { name = "n1"; ${given} }; };
}\n`;
}

/** Programs of the machine that cannot be had here; each refuses what it was not taught. */
const programs = {
  // A machine that goes down ends the updater. As the agent's process there is the updater's own, which lives as long as anybody asks.
  systemctl: `case $* in
  reboot) : >/run/reboot && kill -KILL $PPID ;;
  "show -p ActiveState --value -- kcore-update-work.service") echo inactive ;;
  "show -p Id,"*)
    [ -e /run/current-system/silent ] || printf '{"agent":{"pid":%s,"version":"0","lastHeartbeat":"%s"}}' $PPID "$(date +%s.%N)" >$STATE/status.json
    printf 'Id=kcore-node-agent.service\\nLoadState=loaded\\nActiveState=active\\nUnitFileState=enabled\\nMainPID=%s\\nNRestarts=0\\nExecStart={ argv[]=x ; }\\n\\n' $PPID
    printf 'Id=kcore-controller.service\\nLoadState=not-found\\nActiveState=inactive\\nUnitFileState=\\nMainPID=0\\nNRestarts=0\\nExecStart=\\n' ;;
  *) echo "the stand-in knows no systemctl $*" >&2; exit 64 ;;
esac`,
  "systemd-run": `while [ "$1" != -- ]; do case $1 in --setenv=HOME=*) export "\${1#--setenv=}" ;; esac; shift; done
shift
exec "$@"`,
  bootctl: `case $* in
  --print-esp-path) echo /boot ;;
  "set-oneshot ") rm -f /boot/once ;;
  "set-oneshot nixos-generation-"*.conf) echo "$2" >/boot/once ;;
  *) echo "the stand-in knows no bootctl $*" >&2; exit 64 ;;
esac`,
} as const;

/** A machine that passes for NixOS: the real Nix with a store and profiles of its own, the real updater, and stand-ins for the rest. */
export class NixosMachine {
  readonly #folder: TempDir;
  readonly #cluster: TestCluster;
  #seq = 0;

  private constructor(folder: TempDir, cluster: TestCluster) {
    this.#folder = folder;
    this.#cluster = cluster;
  }

  static async open(): Promise<NixosMachine> {
    const machine = new NixosMachine(await makeTempDir("nixos-machine"), await createTestCluster());
    await machine.#furnish();
    return machine;
  }

  async close(): Promise<void> {
    await this.#cluster.remove();
    await this.#folder.remove();
  }

  #at(path: string): string {
    return join(this.#folder.path, path);
  }

  async #furnish(): Promise<void> {
    for (const folder of ["nix/store", "state", "run", "boot/loader/entries", "bin", "nixpkgs", "systems"])
      mkdirSync(this.#at(folder), { recursive: true });
    for (const [program, text] of Object.entries(programs))
      writeFileSync(this.#at(`bin/${program}`), `#!/bin/sh\nSTATE=${this.#at("state")}\n${text}\n`, { mode: 0o755 });
    writeFileSync(this.#at("boot-id"), randomUUID());
    writeFileSync(this.#at("loader-info"), Buffer.from("\u0006\0systemd-boot 257.5", "utf16le"));
    const nixConf = ["sandbox = false", "build-users-group =", "substitute = false"];
    writeFileSync(this.#at("nix.conf"), `${nixConf.join("\n")}\n`);
    const files = await writeCredentials(
      this.#at("certs"),
      "node",
      issueTo(this.#cluster.authority, "node", randomUUID()),
    );
    const config = { hostname: name, stateDir: this.#at("state"), tls: files };
    writeFileSync(this.#at("agent.yaml"), printYaml(config), { mode: 0o600 });
    for (const repository of ["nixpkgs", "systems"]) this.#git(repository, "init", "-q", "-b", "main");
  }

  #git(repository: string, ...words: readonly string[]): string {
    const identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
    return execFileSync("git", ["-C", this.#at(repository), ...identity, ...words], { encoding: "utf8" }).trim();
  }

  /** Commits what nixpkgs is, which decides the kernel; gives the commit. */
  nixpkgs(kernel: string): string {
    cpSync(fixtures, this.#at("nixpkgs"), { recursive: true });
    writeFileSync(this.#at("nixpkgs/flake.nix"), nixpkgsFlake(kernel));
    return this.#commit("nixpkgs");
  }

  /** Commits the flake with the machine's system, whose lock names the present nixpkgs; gives the commit. */
  systems(given: string, { isLocked = true } = {}): string {
    writeFileSync(this.#at("systems/flake.nix"), systemsFlake(this.#at("nixpkgs"), name, given));
    this.#git("systems", "add", "-A");
    rmSync(this.#at("systems/flake.lock"), { force: true });
    if (isLocked)
      this.inside(`nix --extra-experimental-features 'nix-command flakes' flake update ${this.#at("systems")} 2>&1`);
    return this.#commit("systems");
  }

  #commit(repository: string): string {
    this.#git(repository, "add", "-A");
    this.#git(repository, "commit", "-q", "--allow-empty", "-m", "change");
    return this.#git(repository, "rev-parse", "HEAD");
  }

  get flakeRef(): string {
    return `git+file://${this.#at("systems")}?ref=main`;
  }

  #view(): string {
    const bind = (from: string, to: string): string => `mount --bind ${this.#at(from)} /mnt/root${to}`;
    return withOwnStore(
      "sh",
      bind("nix", "/nix"),
      bind("run", "/run"),
      bind("boot", "/boot"),
      bind("bin", "/usr/local/sbin"),
      bind("boot-id", "/proc/sys/kernel/random/boot_id"),
      "mount -t tmpfs none /mnt/root/sys/firmware",
      "mkdir -p /mnt/root/sys/firmware/efi/efivars /mnt/root/etc/nix",
      `cp ${this.#at("loader-info")} /mnt/root/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f`,
      `cp ${this.#at("nix.conf")} /mnt/root/etc/nix/nix.conf`,
      "touch /mnt/root/etc/NIXOS",
    );
  }

  /** What a command prints on the machine. */
  inside(command: string): string {
    const { status, stdout, stderr } = spawnSync("sh", ["-c", `${this.#view()} -c "$1"`, "sh", command], {
      encoding: "utf8",
      env: { PATH: process.env["PATH"], HOME: "/root" },
    });
    if (status !== 0) throw new Error(`${command}: ${stderr}${stdout}`);
    return stdout.trim();
  }

  /** Puts the first system in place, as an installation would. */
  install(rev: string): void {
    const build = `nix --extra-experimental-features 'nix-command flakes' build --no-link --json '${this.flakeRef}&rev=${rev}#nixosConfigurations."${name}".config.system.build.toplevel'`;
    const [{ outputs }] = JSON.parse(this.inside(build)) as [{ outputs: { out: string } }];
    this.inside(`nix-env -p ${systemProfile} --set ${outputs.out} && ${outputs.out}/bin/switch-to-configuration boot`);
    this.boot();
    rmSync(this.#at("boot/asked"));
  }

  /** The boot loader, and the first thing that a started system does. */
  boot(): void {
    const once = this.#at("boot/once");
    const initOf = (entry: string): string =>
      /init=(\S+)\/init/.exec(readFileSync(this.#at(`boot/loader/entries/${entry}`), "utf8"))?.[1] ?? "";
    const standard = /^default (.*)$/m.exec(readFileSync(this.#at("boot/loader/loader.conf"), "utf8"))?.[1] ?? "";
    const entries = [...(existsSync(once) ? [readFileSync(once, "utf8").trim()] : []), standard];
    rmSync(once, { force: true });
    rmSync(this.#at("run"), { recursive: true });
    mkdirSync(this.#at("run"));
    const system = entries.map(initOf).find((path) => !existsSync(this.#at(`${path.slice(1)}/noboot`)));
    if (system === undefined) throw new Error("nothing boots");
    for (const link of ["booted-system", "current-system"]) symlinkSync(system, this.#at(`run/${link}`));
    writeFileSync(this.#at("boot-id"), randomUUID());
  }

  /** Gives an order and starts the updater, again after each boot, until it has nothing more to do. */
  async order(step: OrderStep, spec: object, update = "u1"): Promise<Report | undefined> {
    const updates = updatesFolder(this.#at("state"));
    const statement = Statement.parse({
      kind: "ClusterUpdate",
      cluster: "lab",
      name: update,
      spec: UpdateSpec.parse({ selector: { allNodes: true }, ...spec }),
      signedAt: new Date().toISOString(),
    });
    const fence = { name: update, epoch: 1, owner: "c1", generation: 1, seq: ++this.#seq };
    await writeOrder(updates, {
      fence,
      step,
      signed: signStatement(JSON.stringify(statement), this.#cluster.authority),
    });
    for (let starts = 0; starts < 4; starts++) {
      this.#startUpdater();
      if (!existsSync(this.#at("run/reboot"))) break;
      this.boot();
    }
    return readReport(updates);
  }

  #startUpdater(): void {
    const words = [process.execPath, nodeProgram, "updater", "run", "--config", this.#at("agent.yaml")];
    const command = `exec ${words.join(" ")} 2>>${this.#at("log")}`;
    const { signal, status } = spawnSync("sh", ["-c", `${this.#view()} -c "$1"`, "sh", command], {
      encoding: "utf8",
      env: { PATH: process.env["PATH"] },
    });
    if (status !== 0 && signal === null && status !== 137) throw new Error(this.log());
  }

  log(): string {
    return readFileSync(this.#at("log"), "utf8");
  }

  /** What systems were asked for, one a line. */
  get asked(): readonly string[] {
    const file = this.#at("boot/asked");
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  }

  get state(): Readonly<Record<"current" | "booted" | "profile", string>> {
    const title = (path: string): string => path.replace(/^\/nix\/store\/\w+-/, "");
    const link = readlinkSync(this.#at(`nix/var/nix/profiles/system`));
    return {
      current: title(readlinkSync(this.#at("run/current-system"))),
      booted: title(readlinkSync(this.#at("run/booted-system"))),
      profile: `${link} ${title(readlinkSync(this.#at(`nix/var/nix/profiles/${link}`)))}`,
    };
  }
}
