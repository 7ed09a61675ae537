/**
 * The node's facts as expressions see them, from the flat lines of facts.sh: dots become maps, whole numbers become
 * numbers, `network.addresses` and `disks` become lists. All of it is data: nothing is ever evaluated (requirement S-4).
 */
export function shapeFacts(flat: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> {
  const facts = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of Object.entries(flat)) {
    const path = name.split(".");
    let map = facts;
    for (const part of path.slice(0, -1)) {
      const inner = map[part];
      map = (typeof inner === "object" && inner !== null ? inner : (map[part] = Object.create(null))) as Record<
        string,
        unknown
      >;
    }
    map[path.at(-1) ?? name] = shape(name, value);
  }
  return facts;
}

function shape(name: string, value: string): unknown {
  if (name === "network.addresses") return value.split("\n").filter(Boolean);
  if (name === "disks") return value.split(" ").filter(Boolean).map(disk);
  if (value === "true" || value === "false") return value === "true";
  return /^\d{1,15}$/.test(value) && !/^0\d/.test(value) && name !== "os.version" ? Number(value) : value;
}

function disk(text: string): { name: string; bytes: number; serial: string } {
  const [name = "", bytes = "0", ...serial] = text.split(":");
  return { name, bytes: Number(bytes), serial: serial.join(":") };
}
