import { moduleText } from "./configuration.ts";
import { NixCode } from "./nix-text.ts";

/** The needs of deploy_node on a node, which NixOS has to meet itself. */
export interface KcoreNeeds {
  readonly isController: boolean;
  /** Units by name, as deploy_node would write them. */
  readonly units: Readonly<Record<string, string>>;
  /** Where the data disks' filesystems are mounted, with their UUIDs. */
  readonly volumes: readonly { readonly path: string; readonly uuid: string }[];
}

/** hosts/NAME/kcore.nix: the files that deploy_node writes below /etc on other systems; it refuses a NixOS node that lacks them. */
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

/** NixOS enables a unit by its own option, and reads no [Install]. */
function wantedBy(unit: string): { readonly wantedBy?: readonly string[] } {
  return unit.includes("\nWantedBy=multi-user.target\n") ? { wantedBy: ["multi-user.target"] } : {};
}
