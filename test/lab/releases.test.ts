import { Catalogue } from "#support/catalogue.ts";
import type { Sample } from "#support/sample.ts";
import { samples } from "./catalogue/all.ts";

/** The most used modules; the catalogue's own test tries every module on Debian 12. */
const used = `directory.managed, file.managed, file.managed validated, symlink.managed, file.absent, group.managed,
  user.managed, unit.managed, service.running, service.stopped, command.run creates, script.run creates, key.generated,
  fact.assert, disk.partitioned, filesystem.formatted mount, mount.mounted, file.line, file.block, hosts.entry,
  authorized_key.present, user.password, sysctl.set, hostname.set, timezone.set, limits.set, sudoers.managed,
  timer.managed, package.repository`.split(/,\s+/);

/** A package from a repository on the node, since the lab's packages are Debian 12's. */
const ownPackage: readonly Sample[] = [
  {
    id: "package.repository own",
    module: "package.repository",
    args: { name: "own", uris: "file:/srv/own", suites: "./", trusted: true },
    before: `mkdir -p /srv/own/deb/DEBIAN && cd /srv/own
printf 'Package: own\\nVersion: 1.0-1\\nArchitecture: all\\nMaintainer: x <x@example.org>\\nDescription: x\\n' >deb/DEBIAN/control
dpkg-deb --build deb own.deb && rm -r deb
{ dpkg-deb -f own.deb; printf 'Filename: ./own.deb\\nSize: %s\\nSHA256: %s\\n' "$(stat -c %s own.deb)" "$(sha256sum own.deb | cut -d' ' -f1)"; } >Packages`,
  },
  {
    id: "package.installed own",
    module: "package.installed",
    args: { name: "own" },
    drift: { by: "apt-get -q -y purge own", finds: { own: "absent" } },
  },
];

function samplesFor(node: string): readonly Sample[] {
  const named = used.map((id) => {
    const sample = samples.find((one) => one.id === id);
    if (sample === undefined) throw new Error(`the catalogue has no sample ${id}`);
    return sample;
  });
  return [...named.map((sample) => ownDisk(sample, node)), ...ownPackage];
}

/** The sample with the node's own disk, which is named after the node. */
function ownDisk({ args, drift, ...sample }: Sample, node: string): Sample {
  const own = (text: string): string => text.replaceAll("n1-disk", `${node}-disk`);
  return {
    ...sample,
    args: JSON.parse(own(JSON.stringify(args))) as Sample["args"],
    ...(drift && { drift: { ...drift, by: own(drift.by) } }),
  };
}

for (const [node, release, title] of [
  ["d11", "bullseye", "Debian 11"],
  ["d13", "trixie", "Debian 13"],
] as const)
  describe(`the most used modules on ${title}`, function () {
    this.timeout(900_000);
    let catalogue: Catalogue;

    before(async () => {
      catalogue = await Catalogue.open({
        nodes: [{ name: node, kind: "debian", release, disks: ["128M"] }],
        samples: { [node]: samplesFor(node) },
      });
    });
    after(() => catalogue?.close());

    it("converge as the dry run reports, and change nothing the second time", () => catalogue.expectConverges(node));

    it("name what another program changed, and correct it", () => catalogue.expectMendsDrift(node));
  });
