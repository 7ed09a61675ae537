import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { configurationText, kcoreText } from "#system/nixos/configuration.ts";
import type { LiveMachine } from "#system/nixos/machine.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const fixtures = join(import.meta.dirname, "../../fixtures");

/** Text with all of Nix's special sequences, which must stay text. */
const nasty = `a"b\\c\${builtins.abort "d"}''e''\${f}$\${g}\n'' + abort "h" + ''\ti`;

const nix = (...words: readonly string[]): string =>
  execFileSync("nix-instantiate", ["--store", "dummy://", ...words], {
    encoding: "utf8",
    maxBuffer: 1 << 26,
    stdio: "pipe",
  });

/** The configuration of a machine as Nix evaluates it, with the stand-in for nixpkgs. */
function evaluate(folder: string): Record<string, unknown> {
  const modules = `[ ${join(folder, "configuration.nix")} ]`;
  const system = `(import ${join(fixtures, "nixpkgs-stand-in/nixos-system.nix")} { modules = ${modules}; }).config`;
  const config = `removeAttrs (${system}) [ "system" "environment" ]`;
  return JSON.parse(nix("--eval", "--strict", "--json", "--expr", config)) as Record<string, unknown>;
}

describe("a NixOS configuration that kcore writes", () => {
  let folder: TempDir;
  beforeEach(async () => {
    folder = await makeTempDir("nixos");
  });
  afterEach(() => folder.remove());

  it("parses as Nix", () => {
    const root = join(fixtures, "nixos");
    const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".nix"));
    expect(files).to.have.length(5);
    nix("--parse", ...files.map((name) => join(root, name)));
  });

  it("sets existing options to values of their types, and includes the hardware of the live system", () => {
    const config = evaluate(join(fixtures, "nixos/hosts/n1.example.org"));
    expect(config).to.deep.include({
      networking: {
        domain: "example.org",
        firewall: { allowedTCPPorts: [9090, 9091] },
        hostName: "n1",
        useDHCP: false,
      },
      nix: { settings: { "experimental-features": ["nix-command", "flakes"], sandbox: false, substituters: [] } },
      nixpkgs: { hostPlatform: "x86_64-linux" },
    });
    const { units } = config["systemd"] as { units: Record<string, { text: string; wantedBy?: string[] }> };
    expect(units["kcore-node-agent.service"]?.text).to.equal(
      "[Service]\nExecStart=/bin/kcore agent\nReadWritePaths=/var/lib/kcore\n[Install]\nWantedBy=multi-user.target\n",
    );
    expect([units["kcore-updater.path"]?.wantedBy, units["kcore-updater.service"]?.wantedBy]).to.deep.equal([
      ["multi-user.target"],
      undefined,
    ]);
  });

  it("keeps any text as data", async () => {
    const machine: LiveMachine = {
      name: "n1",
      user: "ops",
      rootKeys: [nasty],
      userKeys: [nasty],
      hostKeys: [`/etc/ssh/ssh_host_ed25519_key${nasty}`],
      cards: [
        {
          name: nasty,
          match: { [nasty]: nasty },
          dhcp: nasty,
          addresses: [nasty],
          gateways: [nasty],
          nameServers: [nasty],
        },
      ],
      consoles: [nasty],
      disk: nasty,
      partitions: { bios: nasty, esp: nasty, root: nasty },
      release: nasty,
      hardware: "",
    };
    const texts = {
      "configuration.nix": configurationText(machine),
      "kcore.nix": kcoreText({
        isController: true,
        units: { [nasty]: nasty },
        volumes: [{ path: nasty, uuid: nasty }],
      }),
      "hardware-configuration.nix": "{ }\n",
    };
    for (const [name, text] of Object.entries(texts)) await writeFile(join(folder.path, name), text);
    const config = evaluate(folder.path);
    const { units, network } = config["systemd"] as {
      units: Record<string, { text: string }>;
      network: { networks: Record<string, Record<string, unknown>> };
    };
    expect(units[nasty]?.text).to.equal(nasty);
    expect(network.networks[`10-kcore-${nasty}`]).to.deep.equal({
      matchConfig: { [nasty]: nasty },
      networkConfig: { DHCP: nasty },
      address: [nasty],
      gateway: [nasty],
      dns: [nasty],
    });
    const { users } = config["users"] as { users: Record<string, { openssh: unknown }> };
    for (const who of ["root", "ops"]) expect(users[who]?.openssh).to.deep.equal({ authorizedKeys: { keys: [nasty] } });
    expect((config["boot"] as { kernelParams: unknown }).kernelParams).to.deep.equal([`console=${nasty}`]);
    expect(config["fileSystems"]).to.have.property(nasty);
  });

  it("is refused by the stand-in for an unknown option or a value of another type", async () => {
    for (const [line, message] of [
      ["networking.hostname = 1;", "the stand-in knows no option networking.hostname"],
      ["networking.hostName = 1;", "networking.hostName must be str, and is 1"],
      ['networking.firewall.allowedTCPPorts = [ "22" ];', "networking.firewall.allowedTCPPorts must be list of int"],
    ] as const) {
      await writeFile(join(folder.path, "configuration.nix"), `{ ${line} }`);
      expect(() => evaluate(folder.path)).to.throw(message);
    }
  });

  it("is found by the flake in its machine's folder", async () => {
    await cp(join(fixtures, "nixos"), folder.path, { recursive: true });
    await mkdir(join(folder.path, "hosts/n2"));
    await writeFile(join(folder.path, "hosts/n2/configuration.nix"), '{ networking.hostName = "n2"; }');
    const expression = `let
      flake = import ${folder.path}/flake.nix;
      made = flake.outputs { nixpkgs.lib.nixosSystem = import ${join(fixtures, "nixpkgs-stand-in/nixos-system.nix")}; };
    in builtins.mapAttrs (name: system: system.config.networking.hostName) made.nixosConfigurations`;
    expect(JSON.parse(nix("--eval", "--strict", "--json", "--expr", expression))).to.deep.equal({
      "n1.example.org": "n1",
      n2: "n2",
    });
  });
});
