"""What the sources of a program say of it: pure, and from texts alone.

choices      from where on what a script imports may depend on what it is given: `definitions`,
             `values` (what of its names is known), `calls` (tables of what is harmless)
asking       which of its modules may look at the arguments, by what is executed `at_import`
effects      what scripts and modules do with others (`doings`), under which `conditions`, by
             whatever names (`homes`)
present      which modules a text asks for in sys.modules
syntax       statements, as all of them see them

A trial sees what was done; these say what may be done else. Whoever is not sure says that it may.
"""
