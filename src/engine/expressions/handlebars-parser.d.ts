// Only the parser of Handlebars is used; its types cover the whole package, not this file of it.
declare module "handlebars/dist/cjs/handlebars/compiler/base.js" {
  const base: { parse(text: string): unknown };
  export default base;
}
