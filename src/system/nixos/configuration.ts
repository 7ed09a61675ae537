import { assignment, NixCode, type NixValue } from "./nix-text.ts";
import type { Card, LiveMachine } from "./machine.ts";

/** A line of a module: an option's path and value (`names` are further parts of the path), or the text of a comment. */
type ModuleLine = string | readonly [path: string, value: NixValue, ...names: readonly string[]];

/** A NixOS module: `head` names its arguments. */
function moduleText(head: string, lines: readonly ModuleLine[]): string {
  const body = lines.map((line, index) => {
    if (typeof line === "string") return `${index === 0 ? "" : "\n"}${line.replaceAll(/^/gm, "  # ")}`;
    const [path, value, ...names] = line;
    return `  ${assignment([...path.split("."), ...names], value, "  ")}`;
  });
  return `{ ${head} }:\n\n{\n${body.join("\n")}\n}\n`;
}

/** The flake of all machines. Each folder below hosts/ is a machine, so a new machine does not change the flake. */
export function flakeText(release: string): string {
  return `{
  description = "Machines that kcore installed";

  inputs.nixpkgs.url = ${JSON.stringify(`github:NixOS/nixpkgs/nixos-${release}`)};

  outputs =
    { nixpkgs, ... }:
    {
      # Each folder below hosts/ is a machine.
      nixosConfigurations = builtins.mapAttrs (
        name: kind: nixpkgs.lib.nixosSystem { modules = [ (./hosts + "/\${name}/configuration.nix") ]; }
      ) (builtins.readDir ./hosts);
    };
}
`;
}

/** hosts/NAME/configuration.nix: with these settings clients find the machine as they knew its live system. */
export function configurationText(machine: LiveMachine): string {
  const [hostName = "", ...domain] = machine.name.split(".");
  const { partitions } = machine;
  return moduleText("...", [
    "The hardware that was found, and the settings that kcore needs on this machine.",
    ["imports", [new NixCode("./hardware-configuration.nix"), new NixCode("./kcore.nix")]],
    ["networking.hostName", hostName],
    ...(domain.length === 0 ? [] : [["networking.domain", domain.join(".")] as const]),
    "The cards by their hardware addresses, with what the live system had.",
    ["networking.useDHCP", false],
    ["systemd.network.enable", true],
    ["systemd.network.wait-online.anyInterface", true],
    ...machine.cards.map((card) => ["systemd.network.networks", networkOf(card), `10-kcore-${card.name}`] as const),
    ["services.resolved.enable", true],
    "The users who may log in now may log in then. The host keys are those of the live system; NixOS makes none where there are some.",
    ["services.openssh.enable", true],
    ["services.openssh.hostKeys", machine.hostKeys.map((path) => ({ type: keyTypeOf(path), path }))],
    ["services.openssh.settings", { PermitRootLogin: "prohibit-password", PasswordAuthentication: false }],
    ["users.users.root.openssh.authorizedKeys.keys", machine.rootKeys],
    ...(machine.user === "root" ? [] : userLines(machine)),
    "The disk as disko.nix describes it; GRUB starts it by BIOS and by UEFI.",
    ["boot.loader.grub", { enable: true, device: machine.disk, efiSupport: true, efiInstallAsRemovable: true }],
    ["boot.loader.efi.efiSysMountPoint", "/boot/efi"],
    ["boot.kernelParams", machine.consoles.map((console) => `console=${console}`)],
    ["fileSystems", { device: byPartUuid(partitions.root), fsType: "ext4", options: ["noatime"] }, "/"],
    [
      "fileSystems",
      { device: byPartUuid(partitions.esp), fsType: "vfat", options: ["umask=0077", "nofail"] },
      "/boot/efi",
    ],
    "With which release this machine began; not to be raised with updates.",
    ["system.stateVersion", machine.release],
  ]);
}

function networkOf({ match, dhcp, addresses, gateways, nameServers }: Card): NixValue {
  return {
    matchConfig: match,
    ...(dhcp === undefined ? {} : { networkConfig: { DHCP: dhcp } }),
    ...(addresses.length === 0 ? {} : { address: addresses }),
    ...(gateways.length === 0 ? {} : { gateway: gateways }),
    ...(nameServers.length === 0 ? {} : { dns: nameServers }),
  };
}

/** `/etc/ssh/ssh_host_ed25519_key` is of type ed25519. */
function keyTypeOf(path: string): string {
  return /ssh_host_(\w+)_key$/.exec(path)?.[1] ?? "ed25519";
}

function userLines({ user, userKeys }: LiveMachine): readonly ModuleLine[] {
  const account = { isNormalUser: true, extraGroups: ["wheel"], openssh: { authorizedKeys: { keys: userKeys } } };
  return [
    ["users.users", account, user],
    ["security.sudo.wheelNeedsPassword", false],
  ];
}

function byPartUuid(guid: string): string {
  return `/dev/disk/by-partuuid/${guid}`;
}

/** hosts/NAME/disko.nix: the disk as kcore partitioned it, as a configuration of disko. */
export function diskoText({ disk, partitions }: LiveMachine): string {
  const filesystem = (format: string, mountpoint: string, mountOptions: readonly string[]): NixValue => ({
    type: "filesystem",
    format,
    mountpoint,
    mountOptions,
  });
  const layout: NixValue = {
    type: "disk",
    device: disk,
    content: {
      type: "gpt",
      partitions: {
        bios: { priority: 1, label: "bios", device: byPartUuid(partitions.bios), size: "1M", type: "EF02" },
        esp: {
          priority: 2,
          label: "esp",
          device: byPartUuid(partitions.esp),
          size: "512M",
          type: "EF00",
          content: filesystem("vfat", "/boot/efi", ["umask=0077", "nofail"]),
        },
        root: {
          priority: 3,
          label: "root",
          device: byPartUuid(partitions.root),
          size: "100%",
          type: "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709",
          content: filesystem("ext4", "/", ["noatime"]),
        },
      },
    },
  };
  return `# The layout that kcore made, for who goes on with disko: add its module to the machine's modules, import this file, and take
# boot.loader.grub.device and the fileSystems of / and /boot/efi out of configuration.nix. Nothing reads it until then.
{
  ${assignment(["disko", "devices", "disk", "os"], layout, "  ")}
}
`;
}

/** The parts of a deployed node that NixOS itself must declare. */
interface KcoreNeeds {
  readonly isController: boolean;
  /** Units by name, as deploy_node would write them. */
  readonly units: Readonly<Record<string, string>>;
  /** The data disks' filesystems: where they are mounted, and their UUIDs. */
  readonly volumes: readonly { readonly path: string; readonly uuid: string }[];
}

/** hosts/NAME/kcore.nix: the files that deploy_node writes below /etc on other systems; deploy_node refuses a NixOS node without them. */
export function kcoreText({ isController, units, volumes }: KcoreNeeds): string {
  const group = "kcore";
  return moduleText("lib, pkgs, ...", [
    "Programs that its steps call.",
    ["environment.systemPackages", ["pkgs.gptfdisk", "pkgs.lvm2", "pkgs.openssl"].map((text) => new NixCode(text))],
    "The agent's API, and the controller's.",
    ["networking.firewall.allowedTCPPorts", isController ? [9090, 9091] : [9091]],
    "Nodes build nothing and fetch nothing of their own accord; nixos-rebuild takes --option substituters.",
    ["nix.settings.substituters", new NixCode("lib.mkForce [ ]")],
    ["nix.settings.sandbox", false],
    ["nix.settings.experimental-features", ["nix-command", "flakes"]],
    "The controller's own user.",
    ["users.groups", {}, group],
    [
      "users.users",
      {
        isSystemUser: true,
        group,
        home: "/var/lib/kcore",
        description: "kcore controller",
        shell: "/usr/sbin/nologin",
      },
      group,
    ],
    "The services, letter by letter as kcore knows them; they start in vain until it has brought what they run.",
    ...Object.entries(units).map(([name, text]) => ["systemd.units", { text, ...wantedBy(text) }, name] as const),
    ...(volumes.length === 0 ? [] : ["Where volumes lie; kcore makes the filesystems after the first boot."]),
    ...volumes.map(
      ({ path, uuid }) =>
        ["fileSystems", { device: `UUID=${uuid}`, fsType: "ext4", options: ["noatime", "nofail"] }, path] as const,
    ),
  ]);
}

/** The NixOS option that enables a unit, because NixOS ignores the unit's [Install]. */
function wantedBy(unit: string): { readonly wantedBy?: readonly string[] } {
  return unit.includes("\nWantedBy=multi-user.target\n") ? { wantedBy: ["multi-user.target"] } : {};
}
