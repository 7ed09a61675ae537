/** A part of a disko layout that kcore does not make. */
export interface UnsupportedPart {
  /** The path in Nix: `disko.devices.disk.data1.content.type`. */
  readonly path: string;
  readonly why: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** GPT types as disko's users write them, and the contents for which kcore gives a partition that type. */
const gptTypes: Readonly<Record<string, readonly string[]>> = {
  "8300": ["filesystem"],
  "8200": ["swap"],
  "8E00": ["lvm_pv"],
  "8309": ["luks"],
  BF00: ["zfs"],
  BF01: ["zfs"],
};

const kcoreKeys = "kcore makes the key on the node and keeps it there";

/** Keys of disko for things that kcore makes in another way, each with that way. */
const otherWays: Readonly<Record<string, string>> = {
  passwordFile: kcoreKeys,
  keyFile: kcoreKeys,
  askPassword: kcoreKeys,
  lvs: "a layout makes the volume group; lvm.logical_volume makes volumes",
  datasets: "a layout makes the pool; zfs.dataset makes datasets",
  nodev: "it is about no disk",
  mdadm: "md.array makes arrays",
};

/**
 * `disko.devices` in the words of `spec.diskLayout`, for its schema to check. Every key with a value that this reader does not
 * use is reported, except the name of a LUKS container, which kcore chooses itself.
 */
export function translateDisko(devices: unknown): {
  readonly layout: Fields;
  readonly unsupported: readonly UnsupportedPart[];
} {
  const reader = new Reader();
  const { disk, lvm_vg, zpool, ...others } = reader.map(devices, "disko.devices");
  for (const [key, value] of Object.entries(others))
    if (!isEmpty(value)) reader.refuse(`disko.devices.${key}`, otherWays[key]);
  const each = (value: unknown, name: string): readonly (readonly [string, unknown, string])[] =>
    Object.entries(reader.map(value ?? {}, `disko.devices.${name}`)).map(([key, one]) => [
      key,
      one,
      `disko.devices.${name}.${key}`,
    ]);
  const layout = {
    disks: each(disk, "disk").map(([name, one, path]) => reader.disk(name, one, path)),
    lvmVolumeGroups: each(lvm_vg, "lvm_vg").map(([name, one, path]) => {
      const { type: _, ...rest } = reader.typed(one, path, "lvm_vg");
      reader.refuseRest(rest, path);
      return { name };
    }),
    zfsPools: each(zpool, "zpool").map(([name, one, path]) => reader.pool(name, one, path)),
  };
  return { layout, unsupported: reader.unsupported };
}

/** Reads a layout key by key; keys that were not read are refused. */
class Reader {
  readonly unsupported: UnsupportedPart[] = [];

  refuse(path: string, why = "kcore does not know it"): void {
    this.unsupported.push({ path, why });
  }

  refuseRest(rest: Fields, path: string): void {
    for (const [key, value] of Object.entries(rest)) if (!isEmpty(value)) this.refuse(`${path}.${key}`, otherWays[key]);
  }

  map(value: unknown, path: string): Fields {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
    this.refuse(path, "it must be a set");
    return {};
  }

  typed(value: unknown, path: string, type: string): Fields {
    const fields = this.map(value, path);
    if ((fields["type"] ?? type) !== type) this.refuse(`${path}.type`, `it must be "${type}"`);
    return fields;
  }

  disk(name: string, value: unknown, path: string): Fields {
    const { type: _, name: named, device, content, ...rest } = this.typed(value, path, "disk");
    this.refuseRest(rest, path);
    const { type: _1, partitions, ...more } = this.typed(content, `${path}.content`, "gpt");
    this.refuseRest(more, `${path}.content`);
    const list = Object.entries(this.map(partitions ?? {}, `${path}.content.partitions`)).map(([key, one]) =>
      this.partition(key, one, `${path}.content.partitions.${key}`),
    );
    // As disko orders them: by priority, then by name. By default the partition that takes all that is left is the last.
    const ordered = list.toSorted((a, b) => a.priority - b.priority).map(({ fields }) => fields);
    return { name: named ?? name, device, gpt: { partitions: ordered } };
  }

  partition(name: string, value: unknown, path: string): { readonly priority: number; readonly fields: Fields } {
    const { name: named, size, type, content, priority, ...rest } = this.map(value, path);
    this.refuseRest(rest, path);
    const inside = isEmpty(content) ? undefined : this.content(content, `${path}.content`);
    const kind = asText(inside?.["type"] ?? "filesystem");
    if (type !== undefined && !gptTypes[asText(type).toUpperCase()]?.includes(kind))
      this.refuse(`${path}.type`, `kcore gives it the type of a ${kind} partition: leave it out`);
    const fields = { name: named ?? name, size, ...(inside && { content: inside }) };
    return { priority: typeof priority === "number" ? priority : size === "100%" ? 9001 : 1000, fields };
  }

  content(value: unknown, path: string): Fields {
    const { type, ...fields } = this.map(value, path);
    const keys = new Set(
      { filesystem: ["format", "mountpoint", "mountOptions"], lvm_pv: ["vg"], zfs: ["pool"], swap: [] }[asText(type)] ??
        [],
    );
    if (type === "luks") return this.luks(fields, path);
    const knownFields = Object.entries(fields).filter(([key, one]) => keys.has(key) && one !== null);
    this.refuseRest(Object.fromEntries(Object.entries(fields).filter(([key]) => !keys.has(key))), path);
    // disko's own default for mountOptions is left out.
    const withoutDefaults = knownFields.filter(
      ([key, one]) => key !== "mountOptions" || JSON.stringify(one) !== '["defaults"]',
    );
    return { type, ...Object.fromEntries(withoutDefaults) };
  }

  luks(fields: Fields, path: string): Fields {
    const { name: _, settings, content, ...rest } = fields;
    this.refuseRest(rest, path);
    const { allowDiscards, ...more } = this.map(settings ?? {}, `${path}.settings`);
    this.refuseRest(more, `${path}.settings`);
    return {
      type: "luks",
      ...(allowDiscards !== undefined && { allowDiscards }),
      ...(isEmpty(content) ? {} : { content: this.content(content, `${path}.content`) }),
    };
  }

  pool(name: string, value: unknown, path: string): Fields {
    const { type: _, mode, rootFsOptions, ...rest } = this.typed(value, path, "zpool");
    this.refuseRest(rest, path);
    const words: Readonly<Record<string, string>> = { "": "stripe", raidz: "raidz1" };
    return {
      name,
      ...(mode === undefined ? {} : { mode: words[asText(mode)] ?? mode }),
      ...(isEmpty(rootFsOptions) ? {} : { rootProperties: rootFsOptions }),
    };
  }
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function isEmpty(value: unknown): boolean {
  return (
    value === undefined ||
    value === null ||
    value === "" ||
    (typeof value === "object" && Object.keys(value).length === 0)
  );
}
