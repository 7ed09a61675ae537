export { shortAge, since, until } from "#tui/age.ts";
