// what the theme makes scroll can be reached by keyboard
new MutationObserver(() => {
  for (const wide of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) wide.tabIndex = 0;
  // a button beside code is no landmark of the page
  for (const buttons of document.querySelectorAll("nav.md-code__nav:not([role])")) buttons.setAttribute("role", "group");
}).observe(document.documentElement, {childList: true, subtree: true});
