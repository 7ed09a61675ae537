import type { UpdateSpec, UpdateStatement } from "#rollout/spec.ts";
import type { ProgramEnd } from "#updater/ports.ts";
import { statementOf, UpdateWorld } from "#support/update-world.ts";

export const systemProfile = "/nix/var/nix/profiles/system";
const [current, booted] = ["/run/current-system", "/run/booted-system"] as const;
const runtime = "0.1.0";

/** A NixOS system; absent fields have usual values. */
export interface FakeSystem {
  readonly version?: string;
  readonly kernel?: string;
  readonly systemd?: string;
  readonly params?: string;
  /** Whether a machine boots with it. */
  readonly boots?: boolean;
  /** Whether its agent reaches a controller. */
  readonly reaches?: boolean;
  /** Exit codes of its switch-to-configuration, by action. */
  readonly exits?: Readonly<Record<string, number>>;
  /** Missing units of kcore. */
  readonly lacks?: readonly string[];
}

export type Loader = "systemd-boot" | "grub" | "none";

export const revOf = (name: string): string => Buffer.from(name).toString("hex").padStart(40, "0");

export function systemPath(name: string): string {
  return `/nix/store/${"0".repeat(32)}-nixos-system-n1-${name}`;
}

export function nixosStatement(name: string, spec: Partial<UpdateSpec> | object = {}): UpdateStatement {
  const target = { flakeRef: "git+https://git.example.org/systems?ref=main", flakeRev: revOf(name) };
  return statementOf("", { target, ...spec }, { bundle: undefined });
}

/** A NixOS node in memory: Nix, switch-to-configuration and the boot loader, as far as the updater can see them. */
export class NixosWorld extends UpdateWorld {
  readonly systems = new Map<string, FakeSystem>();
  /** The system that the boot loader boots by default. */
  default: string;
  /** The generation for the next boot alone. */
  once: number | undefined;
  readonly #loader: Loader;

  constructor(loader: Loader = "systemd-boot", old: FakeSystem = {}) {
    super(runtime);
    this.#loader = loader;
    this.add("old", old);
    this.links.set(`${systemProfile}-1-link`, systemPath("old"));
    this.links.set(systemProfile, "system-1-link");
    this.default = systemPath("old");
    if (loader === "systemd-boot")
      this.files.set(
        "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
        Buffer.from("\u0006\0systemd-boot 257.5", "utf16le").toString(),
      );
    this.files.set("/proc/self/mounts", "/dev/vda2 / ext4 rw,relatime 0 0\n");
    this.#writeMenu();
    this.startOther();
  }

  /** Adds a system that can be built, at the commit revOf(name). */
  add(name: string, system: FakeSystem): void {
    const path = systemPath(name);
    const { version = "25.05.1", kernel = "6.6.1", systemd = "257.5", params = "loglevel=4", lacks = [] } = system;
    this.systems.set(path, system);
    this.store.set(path, "whole");
    const store = (what: string): string => `/nix/store/${"1".repeat(32)}-${what}`;
    this.links.set(`${path}/kernel`, `${store(`linux-${kernel}`)}/bzImage`);
    this.links.set(`${path}/initrd`, `${store(`initrd-linux-${kernel}`)}/initrd`);
    this.links.set(`${path}/kernel-modules`, store(`linux-${kernel}-modules`));
    this.links.set(`${path}/systemd`, store(`systemd-${systemd}`));
    this.files.set(`${path}/kernel-params`, params);
    this.files.set(`${path}/nixos-version`, version);
    for (const unit of ["kcore-node-agent.service", "kcore-updater.path"])
      if (!lacks.includes(unit)) this.files.set(`${path}/etc/systemd/system/${unit}`, "");
  }

  /** The names of the system in use, the booted one, the boot default and the profile's. */
  get state(): Readonly<Record<"current" | "booted" | "boots" | "profile", string>> {
    const name = (path: string | undefined): string => path?.slice(systemPath("").length) ?? "";
    return {
      current: name(this.links.get(current)),
      booted: name(this.links.get(booted)),
      boots: name(this.default),
      profile: name(this.at(systemProfile)),
    };
  }

  /** The calls of switch-to-configuration. */
  get switches(): readonly string[] {
    return this.commands.flatMap((words) => {
      const found = /-n1-(\w+)\/bin\/switch-to-configuration (\w+)$/.exec(words);
      return found ? [`${found[1]} ${found[2]}`] : [];
    });
  }

  protected override startOther(): void {
    const once = this.once === undefined ? undefined : this.links.get(`${systemProfile}-${this.once}-link`);
    this.once = undefined;
    // If the system for one boot does not come up, an operator or a watchdog resets the machine.
    const system = [once, this.default].find((path) => path !== undefined && this.systems.get(path)?.boots !== false);
    if (system === undefined) throw new Error("the node is lost: what every boot begins with does not boot");
    this.links.set(booted, system);
    this.#use(system);
  }

  #use(path: string): void {
    this.links.set(current, path);
    this.behaviours.set(runtime, { reaches: this.systems.get(path)?.reaches ?? true });
  }

  /** Writes the menu as NixOS' boot loader installers do. */
  #writeMenu(): void {
    const numbers = this.generations(systemProfile);
    if (this.#loader === "systemd-boot") {
      const number = numbers.findLast(
        (generation) => this.links.get(`${systemProfile}-${generation}-link`) === this.default,
      );
      this.files.set(
        "/boot/loader/loader.conf",
        `timeout 5\ndefault nixos-generation-${number}.conf\nconsole-mode keep\n`,
      );
    }
    if (this.#loader === "grub") {
      const entries = numbers.map((one) => `menuentry "NixOS - Configuration ${one} (2026-01-01 - 25.05)" {\n}\n`);
      this.files.set(
        "/boot/grub/grub.cfg",
        `if [ "\${next_entry}" ]; then\nfi\nmenuentry "NixOS" {\n}\nsubmenu "NixOS - All configurations" {\n${entries.join("")}}\n`,
      );
    }
  }

  protected override runOther(words: readonly string[]): ProgramEnd | undefined {
    const done = (stdout = ""): ProgramEnd => ({ code: 0, stdout, stderr: "" });
    const [program = "", ...rest] = words.slice(words.indexOf("--") + 1);
    if (words[0] !== "systemd-run" || program === "sh") return undefined;
    const failure = [...this.failures].find(([start]) => [program, ...rest].join(" ").startsWith(start))?.[1];
    if (failure) return failure;
    if (program === "nix") return this.#build(rest);
    if (program.endsWith("/bin/switch-to-configuration")) return this.#switch(program, rest[0] ?? "");
    switch ([program, ...rest.slice(0, -1)].join(" ")) {
      case "bootctl":
        return done("/boot\n");
      case "bootctl set-oneshot":
        this.once = Number(/^nixos-generation-(\d+)\.conf$/.exec(rest[1] ?? "")?.[1] ?? 0) || undefined;
        return done();
      case "grub-reboot --boot-directory=/boot":
        this.once = Number(/^NixOS - All configurations>NixOS - Configuration (\d+) /.exec(rest[1] ?? "")?.[1]);
        return done();
      case "grub-editenv /boot/grub/grubenv unset":
        this.once = undefined;
        return done();
      default:
        throw new Error(`the fake NixOS node was not taught: ${words.join(" ")}`);
    }
  }

  #build(words: readonly string[]): ProgramEnd {
    const [, flake = "", name = ""] =
      /^(.*)#nixosConfigurations\."([^"]+)"\./.exec(words.join(" ").split(" build ")[1] ?? "") ?? [];
    const rev = /[?&]rev=([0-9a-f]{40})/.exec(flake)?.[1];
    const path = [...this.systems.keys()].find((path) => revOf(path.slice(systemPath("").length)) === rev);
    if (!path || name !== "n1") return { code: 1, stdout: "", stderr: `error: flake '${flake}' has no ${name}` };
    this.setLink(words[words.indexOf("--out-link") + 1] ?? "", path);
    return { code: 0, stdout: "", stderr: "" };
  }

  #switch(program: string, action: string): ProgramEnd {
    const path = program.replace("/bin/switch-to-configuration", "");
    const system = this.systems.get(path);
    if (!system) throw new Error(`${path} is no system`);
    const code = system.exits?.[action] ?? 0;
    if (code !== 0 && code !== 4) return { code, stdout: "", stderr: "error: it does not do" };
    if (action !== "boot") this.#use(path);
    if (action !== "test") {
      this.default = path;
      this.#writeMenu();
    }
    return { code, stdout: "", stderr: code === 4 ? "warning: the following units failed: web.service" : "" };
  }
}
