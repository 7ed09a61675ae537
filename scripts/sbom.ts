import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// Writes sbom.cdx.json (S-26): CycloneDX, of package-lock.json, without packages for building and testing alone.

const root = join(import.meta.dirname, "..");
// Not `--omit dev`: npm then leaves out packages that both a release and its tests need (yaml, zod, diff).
const args = ["sbom", "--package-lock-only", "--sbom-format", "cyclonedx"];
const text = execFileSync("npm", args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 26 });

interface Component {
  readonly "bom-ref": string;
}
const { metadata, components, dependencies, ...sbom } = JSON.parse(text) as {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
};
const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
  readonly packages: Readonly<Record<string, { readonly version: string; dev?: boolean; devOptional?: boolean }>>;
};
const released = new Set(
  Object.entries(packages)
    .filter(([, { dev, devOptional }]) => dev !== true && devOptional !== true)
    .map(([path, { version }]) => `${path.replace(/^.*node_modules\//, "")}@${version}`),
);
const isReleased = (ref: string): boolean => released.has(ref);
const named = {
  ...sbom,
  // npm calls the project after its folder.
  metadata: { ...metadata, component: { ...metadata.component, type: "application", name: "kcore" } },
  components: components.filter((component) => isReleased(component["bom-ref"])),
  dependencies: dependencies
    .filter(({ ref }) => isReleased(ref) || ref === metadata.component["bom-ref"])
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(isReleased) })),
};
writeFileSync(join(root, "sbom.cdx.json"), `${JSON.stringify(named, undefined, 2)}\n`);
