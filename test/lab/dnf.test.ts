import { expect } from "chai";
import { Catalogue } from "#support/catalogue.ts";
import type { Sample } from "#support/sample.ts";

/** Makes packages of rpm in a repository on the node, and leaves dnf as its only package manager. */
const onlyDnf = `set -e
apt-get -q update && apt-get -qy --no-install-recommends install dnf rpm createrepo-c
mkdir -p /srv/own /etc/yum.repos.d && cd /srv/own
make_rpm() {
  printf 'Name: %s\\nVersion: %s\\nRelease: 1\\nSummary: x\\nLicense: x\\nBuildArch: noarch\\n%%description\\nx\\n%%files\\n' "$1" "$2" >"$1.spec"
  rpmbuild --quiet -bb --define '_rpmdir /srv/own' "$1.spec"
}
for name in own gone; do make_rpm "$name" 1.0; done
for name in old behind kept; do make_rpm "$name" 1.0; make_rpm "$name" 1.1; done
createrepo_c -q .
sed 's/^Name: own/Name: file/' own.spec >file.spec && rpmbuild --quiet -bb --define '_rpmdir /srv/file' file.spec
printf '[own]\\nname=own\\nbaseurl=file:///srv/own\\ngpgcheck=0\\n' >/etc/yum.repos.d/own.repo
mv /usr/bin/apt-get /usr/bin/apt-get.away
dnf -q makecache
dnf -qy install old-1.0 behind-1.0 kept-1.0 gone`;

const samples: readonly Sample[] = [
  {
    id: "package.installed own",
    module: "package.installed",
    args: { name: "own" },
    before: onlyDnf,
    drift: { by: "dnf -qy remove own", finds: { own: "absent" } },
  },
  {
    id: "package.installed file",
    module: "package.installed",
    args: { name: "/srv/file/noarch/file-1.0-1.noarch.rpm" },
    drift: { by: "dnf -qy remove file", finds: { "/srv/file/noarch/file-1.0-1.noarch.rpm": "absent" } },
  },
  {
    id: "package.installed gone",
    module: "package.installed",
    args: { name: "gone", state: "absent" },
    drift: { by: "dnf -qy install gone", finds: { gone: "installed" } },
  },
  {
    id: "package.installed old",
    module: "package.installed",
    args: { name: "old", state: "latest" },
    drift: { by: "dnf -qy downgrade old", finds: { old: "1.0-1, 1.1-1 is there" } },
  },
  {
    id: "package.upgraded",
    module: "package.upgraded",
    args: { except: ["kept"] },
    drift: { by: "dnf -qy downgrade behind", finds: { packages: "2 to come: behind: 1.1-1, old: 1.1-1" } },
  },
];

describe("the modules of packages with dnf", function () {
  this.timeout(600_000);
  let catalogue: Catalogue;

  before(async () => {
    catalogue = await Catalogue.open({
      packages: ["createrepo-c", "dnf", "rpm"],
      nodes: [{ name: "r1", kind: "debian", disks: [] }],
      samples: { r1: samples },
    });
  });
  after(() => catalogue?.close());

  it("converge as the dry run reports, and change nothing the second time", () => catalogue.expectConverges("r1"));

  it("name what another program changed, and correct it", () => catalogue.expectMendsDrift("r1"));

  it("leave a package of except as it is", () => {
    expect(catalogue.shell("r1", "rpm -q kept behind").trim()).to.equal("kept-1.0-1.noarch\nbehind-1.1-1.noarch");
  });

  it("refuse a package that no repository has in the dry run, and find it there once the lists are new", async () => {
    const late = { module: "package.installed", args: { names: ["own", "late"] } };
    catalogue.shell("r1", "dnf -qy remove own");
    const unknown = await catalogue.runAlone("r1", late, { dryRun: true });
    expect(unknown.outcome).to.equal("failed");
    expect(unknown.stderr).to.contain("dnf does not know late");
    const madeLate = `sed 's/^Name: own/Name: late/' own.spec >late.spec
rpmbuild --quiet -bb --define '_rpmdir /srv/own' late.spec && createrepo_c -q .`;
    catalogue.shell("r1", `cd /srv/own\n${madeLate}`);
    const withLists = { ...late, args: { ...late.args, updateCache: true } };
    expect((await catalogue.runAlone("r1", withLists)).outcome).to.equal("changed");
  });
});
