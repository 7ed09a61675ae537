/** The facts of a machine that its NixOS configuration needs. */
export interface LiveMachine {
  /** The roster's name; `nixosConfigurations.NAME`. */
  readonly name: string;
  /** The user as whom kcore logs in. */
  readonly user: string;
  /** Root's authorized keys. */
  readonly rootKeys: readonly string[];
  /** The user's authorized keys. */
  readonly userKeys: readonly string[];
  /** The paths of its OpenSSH host keys: `/etc/ssh/ssh_host_ed25519_key`. */
  readonly hostKeys: readonly string[];
  readonly cards: readonly Card[];
  /** The consoles of its kernel's command line: `ttyS0,115200`. */
  readonly consoles: readonly string[];
  /** The system's disk, by a lasting name (`/dev/disk/by-id/…`) if it has one. */
  readonly disk: string;
  /** The partitions' PARTUUIDs. */
  readonly partitions: { readonly bios: string; readonly esp: string; readonly root: string };
  /** The release of NixOS: `25.05`. */
  readonly release: string;
  /** The hardware configuration by nixos-generate-config(8). */
  readonly hardware: string;
}

/** A network card and its settings for systemd.network(5). */
export interface Card {
  readonly name: string;
  readonly match: Readonly<Record<string, string>>;
  readonly dhcp?: string;
  readonly addresses: readonly string[];
  readonly gateways: readonly string[];
  readonly nameServers: readonly string[];
}

/** Reads the fact `network`: for each card the line `[Card NAME]`, and then the text of a systemd.network(5) file. */
export function readCards(text: string): readonly Card[] {
  return text
    .split(/^(?=\[Card )/m)
    .filter((part) => part.startsWith("[Card "))
    .map((part) => {
      const name = /^\[Card (.*)\]$/m.exec(part)?.[1] ?? "";
      const [match, network] = ["Match", "Network"].map((section) => settingsOf(part, section));
      const all = (key: string): string[] => (network ?? []).filter(([name]) => name === key).map(([, value]) => value);
      const [dhcp] = all("DHCP");
      return {
        name,
        match: Object.fromEntries(match ?? []),
        ...(dhcp === undefined ? {} : { dhcp }),
        addresses: all("Address"),
        gateways: all("Gateway"),
        nameServers: all("DNS"),
      };
    });
}

function settingsOf(text: string, section: string): readonly (readonly [string, string])[] {
  const [, rest = ""] = text.split(`[${section}]\n`);
  const [lines = ""] = rest.split(/^\[/m);
  return lines.split("\n").flatMap((line) => {
    const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    return key === undefined || value === undefined ? [] : [[key, value] as const];
  });
}
