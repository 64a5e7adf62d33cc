"""Advice: which connection to use for one layer at one depth, with what it costs and how sure that is.

``request`` checks what the user gives (``joinable`` the layer, ``data_choice`` the data), ``connections`` lists what is
compared, ``budget`` divides the time, ``halving`` and ``finals`` train, ``costs`` times, ``answer`` concludes, ``page``
writes it down. ``run`` has ``advise``, which does all of it.
"""
