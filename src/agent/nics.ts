import { readdir, readFile } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import type { z } from "zod";
import type { Network } from "#api/schemas.ts";

export type Nic = NonNullable<z.infer<typeof Network>["interfaces"]>[number];

/** The network interfaces of this machine without loopback, by name; also those that have no address. */
export async function readNics(root = "/", addressesOf = networkInterfaces): Promise<readonly Nic[]> {
  const folder = join(root, "sys/class/net");
  const addresses = addressesOf();
  const names = new Set([...(await readdir(folder).catch(() => [])), ...Object.keys(addresses)]);
  names.delete("lo");
  return Promise.all(
    [...names].toSorted().map(async (name) => {
      const mac = await readFile(join(folder, name, "address"), "utf8").catch(() => "");
      const own = (addresses[name] ?? []).map(({ cidr, address }) => cidr ?? address);
      return { name, ...(mac.trim() !== "" && { mac: mac.trim() }), addresses: own };
    }),
  );
}
